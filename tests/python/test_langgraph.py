"""LangGraph's suite for checkpointers, and what ours promises beside it: a conversation to read, and little growth."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from boughdb import Bough
from boughdb._requests import to_json
from boughdb.langgraph import BoughSaver
from boughdb.langgraph._messages import from_entry, to_entry


@pytest.fixture
def anyio_backend() -> str:
    """The framework runs on asyncio alone."""
    return "asyncio"


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    notes: list[str]


def new_saver(url: str, **arguments: Any) -> BoughSaver:
    return BoughSaver(url, prefix=f"langgraph-{secrets.token_hex(4)}/", **arguments)


def compiled(saver: Any, reply: str = "No.") -> Any:
    """An agent that answers every message with this text, and keeps a list beside it."""

    def agent(state: State) -> dict[str, Any]:
        said = len(state["messages"])
        return {"messages": [AIMessage(f"{reply} ({said})")], "notes": [*state.get("notes", []), f"note {said}"]}

    graph = StateGraph(State)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    return graph.compile(checkpointer=saver)


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def ask(app: Any, text: str, config: dict[str, Any] | None = None) -> None:
    app.invoke({"messages": [HumanMessage(text)]}, config or thread())


def conversation(bough: Bough, saver: BoughSaver, name: str = "t") -> list[tuple[str, str]]:
    session = bough.session(saver._threads.session_id(name))
    return [(item["message"]["role"], item["message"]["content"][0]["text"]) for item in session.messages()]


@pytest.mark.anyio
async def test_every_capability_of_the_suite(url: str) -> None:
    @checkpointer_test(name="BoughSaver")
    async def bough_saver() -> AsyncIterator[BoughSaver]:
        yield new_saver(url)

    report = await validate(bough_saver)
    failures = [failure for result in report.results.values() for failure in result.failures]
    assert failures == []
    assert sum(result.tests_passed for result in report.results.values()) == 81
    assert sum(result.tests_failed for result in report.results.values()) == 0


def test_a_run_is_a_conversation(url: str, bough: Bough) -> None:
    saver = new_saver(url)
    app = compiled(saver)
    ask(app, "Will it rain?")
    ask(app, "And tomorrow?")
    assert conversation(bough, saver) == [
        ("user", "Will it rain?"),
        ("assistant", "No. (1)"),
        ("user", "And tomorrow?"),
        ("assistant", "No. (3)"),
    ]


def test_every_saver_sees_the_same_history(url: str) -> None:
    saver, memory = new_saver(url), InMemorySaver()
    for app in (compiled(saver), compiled(memory)):
        for turn in range(3):
            ask(app, f"question {turn}")
    fresh = BoughSaver(url, prefix=saver._threads.prefix)

    def states(checkpointer: Any) -> list[Any]:
        history = compiled(checkpointer).get_state_history(thread())
        return [
            (
                [(type(message), message.content) for message in state.values.get("messages", [])],
                state.values.get("notes"),
                state.next,
                state.metadata,
                [task.name for task in state.tasks],
            )
            for state in history
        ]

    assert states(saver) == states(fresh) == states(memory)
    ids = [message.id for message in compiled(fresh).get_state(thread()).values["messages"]]
    assert all(ids) and len(set(ids)) == 6
    assert ids == [message.id for message in compiled(saver).get_state(thread()).values["messages"]]


def test_going_on_from_an_earlier_checkpoint_begins_a_branch(url: str, bough: Bough) -> None:
    saver = new_saver(url)
    app = compiled(saver)
    ask(app, "one")
    after_one = app.get_state(thread()).config
    ask(app, "two")
    ask(app, "another two", after_one)
    assert conversation(bough, saver) == [
        ("user", "one"),
        ("assistant", "No. (1)"),
        ("user", "another two"),
        ("assistant", "No. (3)"),
    ]
    fresh = compiled(BoughSaver(url, prefix=saver._threads.prefix))
    assert [message.content for message in fresh.get_state(thread()).values["messages"]][2] == "another two"


def test_messages_that_are_removed_and_changed_come_back_right(url: str) -> None:
    saver = new_saver(url)
    app = compiled(saver)
    ask(app, "one")
    ask(app, "two")
    first, second, *_ = app.get_state(thread()).values["messages"]
    app.update_state(thread(), {"messages": [RemoveMessage(first.id), AIMessage("changed", id=second.id)]})
    ask(app, "three")
    for checkpointer in (saver, BoughSaver(url, prefix=saver._threads.prefix)):
        messages = compiled(checkpointer).get_state(thread()).values["messages"]
        assert [message.content for message in messages] == ["changed", "two", "No. (3)", "three", "No. (4)"]
        assert messages[0].id == second.id


def test_another_saver_goes_on_with_a_thread(url: str) -> None:
    saver = new_saver(url)
    ask(compiled(saver), "one")
    ask(compiled(BoughSaver(url, prefix=saver._threads.prefix)), "two")
    ask(compiled(saver), "three")
    messages = compiled(saver).get_state(thread()).values["messages"]
    assert [message.content for message in messages][::2] == ["one", "two", "three"]


def test_a_thread_that_another_saver_deleted_begins_anew(url: str) -> None:
    saver = new_saver(url)
    ask(compiled(saver), "one")
    BoughSaver(url, prefix=saver._threads.prefix).delete_thread("t")
    assert saver.get_tuple(thread()) is None
    ask(compiled(saver), "two")
    assert [message.content for message in compiled(saver).get_state(thread()).values["messages"]] == ["two", "No. (1)"]


def test_a_pruned_thread_goes_on(url: str, bough: Bough) -> None:
    saver = new_saver(url)
    for text in ("one", "two"):
        ask(compiled(saver), text)
    saver.prune(["t"])
    assert len(list(saver.list(thread()))) == 1
    # What was pruned is hidden from every read, not only from ours.
    session = bough.session(saver._threads.session_id("t"))
    left = session.entries(limit=500, custom_type="langgraph.checkpoint")["entries"]
    assert {entry["entry_id"].rsplit("|", 1)[0] for entry in left} == {left[0]["entry_id"].rsplit("|", 1)[0]}
    assert len(conversation(bough, saver)) == 4
    ask(compiled(BoughSaver(url, prefix=saver._threads.prefix)), "three")
    state = compiled(saver).get_state(thread()).values
    assert [message.content for message in state["messages"]][::2] == ["one", "two", "three"]
    assert state["notes"] == ["note 1", "note 3", "note 5"]


def test_other_serializers_leave_nothing_to_read(url: str, bough: Bough) -> None:
    saver = new_saver(url, serde=EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456"))
    app = compiled(saver)
    ask(app, "a secret")
    assert [message.content for message in app.get_state(thread()).values["messages"]] == ["a secret", "No. (1)"]
    assert conversation(bough, saver) == []
    stored = str(bough.session(saver._threads.session_id("t")).entries(limit=500, custom_type="langgraph.checkpoint"))
    assert "secret" not in stored


@pytest.mark.anyio
async def test_blocking_and_asynchronous_calls_share_threads(url: str) -> None:
    saver = new_saver(url)
    app = compiled(saver)
    await app.ainvoke({"messages": [HumanMessage("one")]}, thread())
    ask(app, "two")
    state = await app.aget_state(thread())
    assert [message.content for message in state.values["messages"]][::2] == ["one", "two"]


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("text", id="1", name="someone"),
        HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
        AIMessage("", tool_calls=[{"name": "rain", "args": {"city": "Oslo", "days": 1.0}, "id": "c1"}]),
        AIMessage("text", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        AIMessage("text", response_metadata={"model_name": "m-1", "finish_reason": "stop", "when": timedelta(1)}),
        AIMessage("text", additional_kwargs={"bytes": b"\x00"}),
        ToolMessage("no", tool_call_id="c1", name="rain", artifact={"mm": 0.0}, status="error"),
        SystemMessage("Be kind."),
        HumanMessage(""),
    ],
)
def test_a_message_comes_back_equal(message: BaseMessage) -> None:
    serde = InMemorySaver().serde
    sent = to_json(to_entry(message, serde))
    back = from_entry(json.loads(sent), serde)
    assert type(back) is type(message)
    assert back == message


def test_a_text_that_cannot_be_sent_is_kept_as_the_serializer_keeps_it() -> None:
    serde = InMemorySaver().serde
    message = HumanMessage("half of a pair: \ud83d")
    sent = to_json(to_entry(message, serde))
    assert from_entry(json.loads(sent), serde) == serde.loads_typed(serde.dumps_typed(message))

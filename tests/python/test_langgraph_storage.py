"""How checkpoints and messages of LangGraph are stored: each message once, whatever comes first, and in few bytes."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from test_langgraph import State, ask, compiled, conversation, new_saver, thread

from bough_server import Server
from boughdb import Bough
from boughdb.langgraph import BoughSaver
from boughdb.langgraph._ids import checkpoint_of, long_id, new_id_of, short_id
from boughdb.langgraph._shorthand import (
    long_checkpoint,
    long_members,
    long_metadata,
    long_seen,
    long_writes,
    short_checkpoint,
    short_members,
    short_metadata,
    short_seen,
    short_writes,
)
from boughdb.langgraph._threads import config_of

NOWHERE: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
STEP = config_of("t", "", "b")


def state_of(checkpoint_id: str, *messages: BaseMessage) -> Any:
    values = {"messages": list(messages)} if messages else {}
    versions = {"messages": len(messages)} if messages else {}
    return {**empty_checkpoint(), "id": checkpoint_id, "channel_values": values, "channel_versions": versions}


def messages_at(saver: BoughSaver, checkpoint_id: str) -> list[BaseMessage]:
    found = saver.get_tuple(config_of("t", "", checkpoint_id))
    assert found is not None
    return found.checkpoint["channel_values"]["messages"]


def pending_at(saver: BoughSaver, checkpoint_id: str) -> Any:
    found = saver.get_tuple(config_of("t", "", checkpoint_id))
    assert found is not None
    return found.pending_writes


@pytest.mark.parametrize("order", ["write, step, next", "step, write, next", "step, next, write"])
def test_a_message_is_stored_once_whatever_comes_first(url: str, bough: Bough, order: str) -> None:
    """The framework stores a step and what the step wrote in any order."""
    saver = new_saver(url)
    asked, said, later = HumanMessage("one", id="1"), AIMessage("two", id="2"), HumanMessage("three", id="3")
    before = saver.put(NOWHERE, state_of("0", asked), {}, {"messages": 1})
    do = {
        "step": lambda: saver.put(before, state_of("b", asked), {}, {}),
        "write": lambda: saver.put_writes(STEP, [("messages", [said])], "task"),
        "next": lambda: saver.put(STEP, state_of("c", asked, said), {}, {"messages": 2}),
    }
    for name in order.split(", "):
        do[name]()
    saver.put(config_of("t", "", "c"), state_of("d", asked, said, later), {}, {"messages": 3})
    assert [text for _, text in conversation(bough, saver)] == ["one", "two", "three"]
    stored = bough.session(saver._threads.session_id("t")).entries(id_prefix="", limit=100)["entries"]
    assert len([entry for entry in stored if "message" in entry]) == 3
    for one in (saver, BoughSaver(url, prefix=saver._threads.prefix)):
        assert [messages_at(one, name) for name in "bcd"] == [[asked], [asked, said], [asked, said, later]]
        assert [pending_at(one, name) for name in "bcd"] == [[("task", "messages", [said])], [], []]


def test_a_write_that_the_state_does_not_take_over_is_left_on_a_branch(url: str, bough: Bough) -> None:
    saver = new_saver(url)
    asked, guessed, changed = HumanMessage("one", id="1"), AIMessage("guessed", id="2"), AIMessage("changed", id="2")
    before = saver.put(NOWHERE, state_of("0", asked), {}, {"messages": 1})
    saver.put_writes(STEP, [("messages", [guessed])], "task")
    saver.put(before, state_of("b", asked), {}, {})
    other = BoughSaver(url, prefix=saver._threads.prefix)
    assert messages_at(other, "b") == [asked]
    other.put(STEP, state_of("c", asked, changed), {}, {"messages": 2})
    assert [text for _, text in conversation(bough, saver)] == ["one", "changed"]
    for one in (saver, other, BoughSaver(url, prefix=saver._threads.prefix)):
        assert [messages_at(one, name) for name in "bc"] == [[asked], [asked, changed]]
        assert pending_at(one, "b") == [("task", "messages", [guessed])]


def test_a_thread_of_the_typescript_package_is_read_and_goes_on(url: str, bough: Bough) -> None:
    """The file is what boughdb/langgraph stored of two questions, in TypeScript."""
    saver = new_saver(url)
    entries = json.loads(Path(__file__).with_name("typescript-thread.json").read_text())
    bough.session(saver._threads.session_id("t")).append_many(entries, create=True)
    states = [
        [message.content for message in state.values.get("messages", [])] for state in compiled(saver).get_state_history(thread())
    ]
    both = ["Will it rain?", "No. (1)", "Sure?", "No. (3)"]
    assert states == [both, both[:3], both[:2], both[:2], both[:1], []]
    ask(compiled(saver), "Really?")
    messages = compiled(BoughSaver(url, prefix=saver._threads.prefix)).get_state(thread()).values["messages"]
    assert [message.content for message in messages] == [*both, "Really?", "No. (5)"]
    assert [text for _, text in conversation(bough, saver)] == [*both, "Really?", "No. (5)"]


@pytest.mark.parametrize("text", ["1f1e2021-19f1-620b-8036-3480c497da5f", "run", "", "=", "1F1E2021-19F1-620B-8036-3480C497DA5F"])
def test_ids_come_back_from_their_short_form(text: str) -> None:
    assert long_id(short_id(text)) == text
    assert checkpoint_of(new_id_of("space|name", text)) == text


@pytest.mark.parametrize(
    "said",
    [
        {"source": "loop", "step": 3, "parents": {}},
        {"source": "loop", "step": 3, "parents": {"": "x"}},
        {"source": "loop", "step": 3, "parents": {}, "run_id": "r"},
        {"v": 4, "ts": "2026-01-01T00:00:00+00:00"},
        {"v": 4, "ts": "2026-01-01T00:00:00+00:00", "updated_channels": ["messages"]},
        {"v": 3, "ts": "2026-01-01T00:00:00+00:00"},
        {},
    ],
)
def test_what_every_checkpoint_says_comes_back_from_its_short_form(said: dict[str, Any]) -> None:
    assert long_metadata(short_metadata({"j": said})) == {"j": said}
    assert long_members(short_members({"j": said})) == {"j": said}


def test_seen_versions_come_back_from_their_short_form() -> None:
    seen = {"__input__": {}, "__start__": {"__start__": 1}, "a": {"branch:to:a": "1.5"}, "b": {"branch:to:a": 2, "x": 1}}
    assert short_seen(seen)["a"] == "1.5"
    assert long_seen(short_seen(seen)) == seen
    assert long_seen(seen) == seen, "as earlier versions stored it"


TIME = "2026-11-17T20:16:07.269060+00:00"
NAMES = ["messages", "branch:to:agent", "branch:to:", "branch:to:>x", ">x", "=x", "=", "~", ""]


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-17T20:16:07.269060+00:00",
        "2026-11-17T20:16:07+00:00",
        "2026-11-17T20:16:07.269Z",
        "2026-11-17T20:16:07",
        "soon",
        "",
    ],
)
def test_documents_come_back_from_their_short_form(time: str) -> None:
    versions = {name: number for number, name in enumerate(NAMES)}
    values = {name: {"j": name} for name in NAMES}
    document = {"p": "x", "cv": versions, "vs": {}, "c": values, "x": [time, *NAMES], "md": ["loop", 1]}
    assert long_checkpoint(short_checkpoint(document)) == document
    opaque = {**document, "x": {"t": "msgpack", "b": ""}}
    assert long_checkpoint(short_checkpoint(opaque)) == opaque
    for path in (*NAMES, "~__pregel_pull, agent", "~__pregel_push, 0"):
        writes = {"t": "x", "p": path, "w": [[name, {"j": None}] for name in NAMES]}
        assert long_writes(short_writes(writes)) == writes
    assert long_writes(short_writes({"t": "x", "w": []})) == {"t": "x", "w": []}


def test_a_usual_step_is_short() -> None:
    document = {
        "cv": {"branch:to:agent": 1},
        "c": {},
        "vs": {},
        "x": ["2026-11-17T20:16:07.269060+00:00", "branch:to:agent"],
        "md": [],
    }
    assert short_checkpoint(document) | {"vs": {}} == {
        "cv": {">agent": 1},
        "c": {},
        "vs": {},
        "x": [1794946567269060, ">agent"],
        "md": [],
    }


def stored_bytes(server: Server) -> int:
    return sum(file.stat().st_size for file in (Path(server.folder) / "sessions").rglob("*.seg"))


def test_a_long_conversation_stays_small(own_server: Server) -> None:
    words = [secrets.token_urlsafe(5) for _ in range(1000)]
    total = 0

    def text() -> str:
        nonlocal total
        said = " ".join(secrets.choice(words) for _ in range(125))
        total += len(said)
        return said

    graph = StateGraph(State)
    graph.add_node("agent", lambda state: {"messages": [AIMessage(text())]})
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    app = graph.compile(checkpointer=BoughSaver(own_server.url))
    for _ in range(60):
        ask(app, text())
    assert stored_bytes(own_server) < 3 * total
    with Bough(own_server.url) as bough:
        stored = bough.session("t").entries(limit=500)["entries"]
    assert len([entry for entry in stored if "message" in entry]) == 120

"""What the protocol of Pydantic AI's conversation store asks for, on its own store in memory and on ours.

The framework has no suite for its stores, so this one is written from the documentation of the protocol.
"""

from __future__ import annotations

import secrets

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel

from boughdb import Bough
from boughdb.pydantic_ai import BoughConversationStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Agents of the framework run on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["in memory", "bough"])
def store(request: pytest.FixtureRequest, url: str) -> ConversationStore:
    if request.param == "in memory":
        return InMemoryConversationStore()
    return BoughConversationStore(url, prefix=f"pydantic-{secrets.token_hex(4)}/")


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def said(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(content=text)], model_name="m-1")


async def saved(store: ConversationStore, conversation_id: str = "c", turns: int = 2, scope: str | None = None) -> Conversation:
    messages = [message for turn in range(turns) for message in (asked(f"q{turn}"), said(f"a{turn}"))]
    conversation = Conversation(messages=messages, conversation_id=conversation_id)
    await store.save(conversation, scope=scope)
    return conversation


async def test_a_conversation_comes_back_as_it_was_saved(store: ConversationStore) -> None:
    messages: list[ModelMessage] = [
        asked("What is the weather?"),
        ModelResponse(parts=[ThinkingPart(content="hm"), ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="t1")]),
        ModelRequest(parts=[ToolReturnPart("weather", {"rain": 0.5}, tool_call_id="t1")]),
        said("Some rain."),
    ]
    conversation = Conversation(messages=messages, conversation_id="c")
    entries = await store.save(conversation)
    assert [entry.message for entry in entries] == messages
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == messages
    assert loaded.revision == conversation.revision


async def test_what_was_never_saved_is_none(store: ConversationStore) -> None:
    assert await store.load("nobody") is None
    assert await store.load_entries("nobody") is None


async def test_a_save_stores_only_new_messages(store: ConversationStore) -> None:
    await saved(store)
    loaded = await store.load("c")
    assert loaded is not None
    loaded.messages.append(asked("more"))
    new = await store.save(loaded)
    assert [entry.message for entry in new] == [loaded.messages[-1]]
    assert await store.save(loaded) == []
    entries = await store.load_entries("c")
    assert entries is not None
    assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]


async def test_a_stale_save_is_a_conflict_and_leaves_nothing_behind(store: ConversationStore) -> None:
    await saved(store)
    one, other = await store.load("c"), await store.load("c")
    assert one is not None and other is not None
    one.messages.append(asked("one"))
    other.messages.append(asked("other"))
    await store.save(one)
    with pytest.raises(ConversationConflict):
        await store.save(other)
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == one.messages


async def test_saving_without_new_messages_still_conflicts(store: ConversationStore) -> None:
    await saved(store)
    one, other = await store.load("c"), await store.load("c")
    assert one is not None and other is not None
    one.usage.requests += 1
    await store.save(one)
    with pytest.raises(ConversationConflict):
        await store.save(other)


async def test_a_new_conversation_does_not_replace_one_of_its_id(store: ConversationStore) -> None:
    await saved(store)
    with pytest.raises(ConversationConflict):
        await saved(store)


async def test_the_newest_messages_can_be_loaded_alone(store: ConversationStore) -> None:
    conversation = await saved(store, turns=3)
    for limit in (0, 1, 4, 100):
        loaded = await store.load("c", limit=limit)
        assert loaded is not None
        assert loaded.messages == (conversation.messages[-limit:] if limit else [])
    with pytest.raises(UserError):
        await store.load("c", limit=-1)


async def test_a_window_is_saved_behind_the_whole_history(store: ConversationStore) -> None:
    conversation = await saved(store, turns=3)
    window = await store.load("c", limit=1)
    assert window is not None
    window.messages.append(asked("more"))
    await store.save(window)
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == [*conversation.messages, window.messages[-1]]


async def test_a_rewritten_history_branches_and_keeps_the_old_one(store: ConversationStore) -> None:
    first = await saved(store, turns=2)
    old = await store.load_entries("c")
    assert old is not None
    rewritten = Conversation(messages=[*first.messages[:2], asked("instead")], conversation_id="c", revision=first.revision)
    await store.save(rewritten)
    loaded = await store.load("c")
    record = await store.read_record("c")
    assert loaded is not None and record is not None
    assert loaded.messages == rewritten.messages
    assert record.branches == [old[-1].id]
    assert [entry.id for entry in await store.read_history(old[-1].id)] == [entry.id for entry in old]


async def test_a_history_rewritten_from_its_first_message_is_another_one(store: ConversationStore) -> None:
    first = await saved(store)
    rewritten = Conversation(messages=[asked("new beginning")], conversation_id="c", revision=first.revision)
    await store.save(rewritten)
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == rewritten.messages


async def test_branching_back_and_forth(store: ConversationStore) -> None:
    first = await saved(store, turns=2)
    entries = await store.load_entries("c")
    assert entries is not None
    branched = await store.branch("c", at=2, expected_revision=first.revision)
    assert branched.messages == first.messages[:2]
    branched.messages.append(asked("another way"))
    await store.save(branched)
    back = await store.branch("c", from_entry=entries[-1].id, expected_revision=branched.revision)
    assert back.messages == first.messages
    with pytest.raises(ConversationConflict):
        await store.branch("c", at=1, expected_revision=first.revision)
    with pytest.raises(UserError):
        await store.branch("c", from_entry="nobody", expected_revision=back.revision)


async def test_a_fork_goes_its_own_way(store: ConversationStore) -> None:
    first = await saved(store, turns=2)
    fork = await store.fork("c", at=2, new_conversation_id="f")
    assert fork.messages == first.messages[:2]
    fork.messages.append(asked("in the fork"))
    await store.save(fork)
    loaded, original = await store.load("f"), await store.load("c")
    record = await store.read_record("f")
    assert loaded is not None and original is not None and record is not None
    assert loaded.messages == fork.messages
    assert original.messages == first.messages
    assert record.forked_from == "c"
    with pytest.raises(ConversationConflict):
        await store.fork("c", new_conversation_id="f")


async def test_a_fork_outlives_its_original(store: ConversationStore) -> None:
    first = await saved(store)
    await store.fork("c", new_conversation_id="f")
    await store.delete("c")
    loaded = await store.load("f")
    assert loaded is not None
    assert loaded.messages == first.messages


async def test_a_fork_of_nothing_begins_empty(store: ConversationStore) -> None:
    await saved(store)
    fork = await store.fork("c", at=0, new_conversation_id="f")
    assert fork.messages == []
    fork.messages.append(asked("hello"))
    await store.save(fork)
    loaded = await store.load("f")
    assert loaded is not None
    assert loaded.messages == fork.messages


async def test_scopes_keep_conversations_apart(store: ConversationStore) -> None:
    await saved(store, "a", scope="alice")
    await saved(store, "b", scope="bob")
    assert await store.load("a", scope="bob") is None
    assert [record.conversation_id for record in await store.list_conversations(scope="alice")] == ["a"]
    await store.delete("a", scope="bob")
    loaded = await store.load("a", scope="alice")
    assert loaded is not None
    with pytest.raises(ConversationConflict):
        await store.save(loaded, scope="bob")


async def test_lists_are_newest_first_and_bounded(store: ConversationStore) -> None:
    for name in ("a", "b", "c"):
        await saved(store, name)
    again = await store.load("a")
    assert again is not None
    await store.save(again)
    assert [record.conversation_id for record in await store.list_conversations()] == ["a", "c", "b"]
    assert [record.conversation_id for record in await store.list_conversations(limit=2)] == ["a", "c"]
    with pytest.raises(UserError):
        await store.list_conversations(limit=-1)


async def test_a_deleted_conversation_is_gone_and_its_id_is_free(store: ConversationStore) -> None:
    first = await saved(store)
    await store.delete("c")
    assert await store.load("c") is None
    assert await store.list_conversations() == []
    with pytest.raises(ConversationConflict):
        await store.save(first)
    await store.delete("c")
    again = await saved(store, turns=1)
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == again.messages


async def test_an_entry_is_found_by_its_id(store: ConversationStore) -> None:
    await saved(store)
    entries = await store.load_entries("c")
    assert entries is not None
    assert await store.read_entry(entries[1].id) == entries[1]
    with pytest.raises(LookupError):
        await store.read_entry("nobody")


async def test_usage_and_a_run_go_with_the_conversation(store: ConversationStore) -> None:
    agent = Agent(TestModel(custom_output_text="Yes."))
    result = await agent.run("Will it rain?", conversation=Conversation(conversation_id="run"))
    await store.save(result)
    loaded = await store.load("run")
    assert loaded is not None
    assert loaded.usage == result.conversation.usage
    result = await agent.run("And tomorrow?", conversation=loaded)
    await store.save(result)
    loaded = await store.load("run")
    assert loaded is not None
    assert len(loaded.messages) == 4


async def test_a_store_that_has_seen_nothing_finds_entries(url: str) -> None:
    prefix = f"pydantic-{secrets.token_hex(4)}/"
    store = BoughConversationStore(url, prefix=prefix)
    await saved(store)
    entries = await store.load_entries("c")
    assert entries is not None
    other = BoughConversationStore(url, prefix=prefix)
    assert await other.read_entry(entries[0].id) == entries[0]
    assert await other.read_history(entries[-1].id) == entries


async def test_a_conversation_is_readable(url: str, bough: Bough) -> None:
    prefix = f"pydantic-{secrets.token_hex(4)}/"
    await saved(BoughConversationStore(url, prefix=prefix), turns=1)
    read = [(item["message"]["role"], item["message"]["content"][0]["text"]) for item in bough.session(f"{prefix}c").messages()]
    assert read == [("user", "q0"), ("assistant", "a0")]


async def test_a_leaf_that_somebody_moved_does_not_stop_saving(url: str, bough: Bough) -> None:
    prefix = f"pydantic-{secrets.token_hex(4)}/"
    store = BoughConversationStore(url, prefix=prefix)
    await saved(store)
    loaded = await store.load("c")
    entries = await store.load_entries("c")
    assert loaded is not None and entries is not None
    bough.session(f"{prefix}c").switch_to(entries[0].id)
    loaded.messages.append(asked("more"))
    await store.save(loaded)
    again = await store.load("c")
    assert again is not None
    assert again.messages == loaded.messages

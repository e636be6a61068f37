"""The client against a server: sessions, messages, branches, and what is refused."""

from __future__ import annotations

import pytest

from bough_server import texts
from boughdb import (
    AsyncBough,
    Bough,
    ConnectionFailed,
    InvalidRequest,
    LeafConflict,
    NotFound,
    Retries,
)


def test_a_session_is_created_described_and_deleted(bough: Bough) -> None:
    session = bough.create("Weather", description="for Oslo", metadata={"user": "u1"})
    meta = session.meta()
    assert (meta["title"], meta["description"], meta["metadata"]) == ("Weather", "for Oslo", {"user": "u1"})
    assert session.exists()
    session.set_status("working")
    assert session.meta()["status"] == "working"
    assert session.delete()
    assert not session.exists()
    assert bough.undelete(session.id).meta()["title"] == "Weather"


def test_ensure_makes_a_session_once(bough: Bough) -> None:
    assert bough.ensure("one", title="first").meta()["title"] == "first"
    assert bough.ensure("one", title="second").meta()["title"] == "first"


@pytest.mark.parametrize("session_id", ["a/b", "a b?c#d", "ünïcode", "%2F", "a:b@c+d"])
def test_ids_of_any_spelling_are_found_again(bough: Bough, session_id: str) -> None:
    session = bough.ensure(session_id)
    session.append("hello", entry_id=f"entry {session_id}")
    assert session.meta()["session_id"] == session_id
    assert session.entry(f"entry {session_id}")["message"]["role"] == "user"


def test_lists_are_read_page_by_page(bough: Bough) -> None:
    for _ in range(7):
        bough.create(metadata={"list": "pages"})
    found = list(bough.list(metadata={"list": "pages"}, page_size=3))
    assert len({meta["session_id"] for meta in found}) == 7


def test_messages_are_read_in_both_orders_over_pages(bough: Bough) -> None:
    session = bough.create()
    session.append_many([{"message": {"role": "user", "content": str(number)}} for number in range(7)])
    oldest = [item["message"]["content"][0]["text"] for item in session.messages(page_size=3)]
    newest = [item["message"]["content"][0]["text"] for item in session.messages(page_size=3, order="newest")]
    assert oldest == [str(number) for number in range(7)]
    assert newest == oldest[::-1]


def test_a_message_comes_back_in_the_format_that_it_came_in_and_in_others(bough: Bough) -> None:
    session = bough.create()
    said = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "rain", "arguments": '{"city": "Oslo"}'}}
    ]}  # fmt: skip
    session.append(said, format="openai-chat")
    (chat,) = [item["message"] for item in session.messages(format="openai-chat")]
    (anthropic,) = [item["message"] for item in session.messages(format="anthropic")]
    assert chat == said
    assert anthropic["content"] == [{"type": "tool_use", "id": "c1", "name": "rain", "input": {"city": "Oslo"}}]


def test_a_branch_begins_where_the_parent_is(bough: Bough) -> None:
    session = bough.create()
    first = session.append("first")["entry_id"]
    left = session.append("left")["entry_id"]
    right = session.append("right", parent_id=first)["entry_id"]
    assert texts(session) == ["first", "right"]
    assert {branch["entry_id"] for branch in session.branches()} == {left, right}
    session.switch_to(left, expected_leaf=right)
    assert texts(session) == ["first", "left"]
    with pytest.raises(LeafConflict) as refused:
        session.switch_to(first, expected_leaf=right)
    assert refused.value.active_leaf == left
    session.switch_to(None)
    assert texts(session) == []


def test_a_fork_has_the_path(bough: Bough) -> None:
    session = bough.create("original")
    first = session.append("first")["entry_id"]
    session.append("second")
    fork = session.fork(first, title="copy")
    assert (fork.meta()["forked_from"], fork.meta()["title"]) == (session.id, "copy")
    assert texts(fork) == ["first"]


def test_a_batch_is_all_or_nothing(bough: Bough) -> None:
    session = bough.create()
    leaf = session.append("first")["entry_id"]
    bad = {"message": {"role": "user", "content": "x"}, "parent_id": "nobody"}
    with pytest.raises(InvalidRequest) as refused:
        session.append_many([{"message": {"role": "user", "content": "second"}}, bad])
    assert refused.value.code == "session/parent_not_found"
    assert texts(session) == ["first"]
    with pytest.raises(LeafConflict):
        session.append_many([{"message": {"role": "user", "content": "second"}}], expected_leaf="another")
    session.append_many([{"message": {"role": "user", "content": "second"}}], expected_leaf=leaf, meta={"title": "new"})
    assert texts(session) == ["first", "second"]
    assert session.meta()["title"] == "new"


def test_any_json_is_kept(bough: Bough) -> None:
    session = bough.create()
    data = {"z": 1, "a": [1.0, 2**80, "\u2028", None, {"deep": [[]]}], "large": "x" * 2_000_000}
    noted = session.append_custom("state", data)
    assert session.entry(noted["entry_id"])["custom"]["data"] == data
    assert list(session.messages()) == []


def test_entries_are_found_by_key(bough: Bough) -> None:
    session = bough.create()
    for number in range(5):
        session.append_custom("count", number, entry_id=f"count-{number}")
    session.append_custom("other", None, entry_id="other-1")
    found = session.entries(ids=["count-3", "count-1"])["entries"]
    assert [entry["entry_id"] for entry in found] == ["count-3", "count-1"]
    newest = session.entries(custom_type="count", order="newest", limit=2)["entries"]
    assert [entry["custom"]["data"] for entry in newest] == [4, 3]
    named = session.entries(id_prefix="other-")["entries"]
    assert [entry["entry_id"] for entry in named] == ["other-1"]


def test_usage_context_and_search_see_what_was_said(bough: Bough) -> None:
    session = bough.create()
    session.append("What about zanzibar?")
    reply = {"role": "assistant", "content": "Far away.", "model": "m-1", "usage": {"input": 7, "output": 3}}
    session.append(reply)
    assert session.usage()["session"]["models"]["m-1"]["output"] == 3
    context = session.context(format="anthropic")
    assert [item["message"]["role"] for item in context["messages"]] == ["user", "assistant"]
    conversation = context.get("conversation")
    assert conversation is not None
    assert conversation["messages"][1] == {"role": "assistant", "content": [{"type": "text", "text": "Far away."}]}
    hits = bough.search("zanzibar")["hits"]
    assert [hit["meta"]["session_id"] for hit in hits] == [session.id]


def test_errors_say_their_code(bough: Bough) -> None:
    with pytest.raises(NotFound) as refused:
        bough.session("nobody").meta()
    assert (refused.value.status, refused.value.code) == (404, "session/not_found")
    assert refused.value.hint
    with pytest.raises(InvalidRequest):
        bough.create().append({"role": "nobody", "content": "x"})


def test_a_server_that_is_not_there_is_an_error_of_the_connection() -> None:
    with Bough("http://127.0.0.1:1", retries=Retries(attempts=2, first_pause=0.0)) as bough:
        with pytest.raises(ConnectionFailed):
            bough.create()


@pytest.mark.anyio
async def test_the_asynchronous_twin_does_the_same(url: str) -> None:
    async with AsyncBough(url) as bough:
        session = await bough.create("Weather")
        await session.append("Will it rain?")
        assert [item["message"]["role"] async for item in session.messages()] == ["user"]
        assert [meta["title"] async for meta in bough.list(id_prefix=session.id)] == ["Weather"]
        with pytest.raises(NotFound):
            await bough.session("nobody").meta()

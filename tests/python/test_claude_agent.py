"""The contracts of the Claude Agent SDK for session stores, and what ours promises beside them."""

from __future__ import annotations

import secrets
from typing import Any

import anyio
import pytest
from claude_agent_sdk.testing import run_session_store_conformance

from boughdb import Bough
from boughdb.claude_agent import BoughSessionStore

pytestmark = pytest.mark.anyio

KEY: Any = {"project_key": "project", "session_id": "session"}
LINES: Any = [
    {"type": "user", "uuid": "u1", "timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": "hi"}},
    {"type": "system", "subtype": "hook", "n": 1.0},
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "hello"}],
            "usage": {"input_tokens": 3, "output_tokens": 1},
            "stop_reason": "end_turn",
        },
    },
    {"type": "user", "uuid": "u3", "message": {"role": "user", "content": "and\u2028more"}, "isMeta": True},
]


def new_store(url: str) -> BoughSessionStore:
    return BoughSessionStore(url, prefix=f"claude-{secrets.token_hex(4)}")


async def test_the_fourteen_contracts_hold(url: str) -> None:
    await run_session_store_conformance(lambda: new_store(url))


async def test_lines_come_back_as_they_were(url: str) -> None:
    store = new_store(url)
    await store.append(KEY, LINES)
    assert await store.load(KEY) == LINES


async def test_a_line_that_is_there_is_not_appended_again(url: str) -> None:
    store = new_store(url)
    more: Any = {"type": "summary", "summary": "more"}
    await store.append(KEY, LINES[:1])
    await store.append(KEY, [*LINES[:1], LINES[2], more])
    await store.append(KEY, LINES[:1])
    assert await store.load(KEY) == [LINES[0], LINES[2], more]


async def test_a_line_that_no_message_can_be_made_of_is_kept_among_messages(url: str, bough: Bough) -> None:
    store = new_store(url)
    odd: Any = [{"type": "user", "message": {"role": "user", "content": {"not": "content"}}}, LINES[0]]
    await store.append(KEY, odd)
    assert await store.load(KEY) == odd
    (meta,) = bough.list(metadata={"claude_agent_store": store._prefix})
    assert [item["entry_id"] for item in bough.session(meta["session_id"]).messages()] == ["u1"]


async def test_a_transcript_is_a_conversation(url: str, bough: Bough) -> None:
    store = new_store(url)
    await store.append(KEY, LINES)
    (meta,) = bough.list(metadata={"claude_agent_store": store._prefix})
    messages = [item["message"] for item in bough.session(meta["session_id"]).messages()]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"][0]["text"] == "hello"
    assert bough.session(meta["session_id"]).usage()["session"]["total"]["output"] == 1


async def test_appends_at_the_same_time_are_all_kept_and_summed_up(url: str) -> None:
    store = new_store(url)

    async def append(writer: int) -> None:
        for number in range(5):
            line: Any = {
                "type": "user",
                "uuid": f"{writer}-{number}",
                "customTitle": f"{writer}",
                "timestamp": "2026-01-01T00:00:00Z",
            }
            await store.append(KEY, [line])

    async with anyio.create_task_group() as tasks:
        for writer in range(4):
            tasks.start_soon(append, writer)
    loaded = await store.load(KEY)
    assert loaded is not None
    assert sorted(line["uuid"] for line in loaded) == sorted(f"{writer}-{number}" for writer in range(4) for number in range(5))
    (summary,) = await store.list_session_summaries(KEY["project_key"])
    assert summary["data"]

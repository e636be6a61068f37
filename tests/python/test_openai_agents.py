"""Sessions of the OpenAI Agents SDK beside its own tests: several programs at once, and what a run looks like."""

from __future__ import annotations

import secrets
from typing import Any

import anyio
import pytest
from agents.memory import Session, SessionSettings

from boughdb import Bough
from boughdb.openai_agents import BoughSession


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio

ITEMS: Any = [
    {"role": "user", "content": "Will it rain?"},
    {"type": "function_call", "call_id": "c1", "name": "rain", "arguments": '{"city": "Oslo"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "no"},
    {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
        {"type": "output_text", "text": "No.", "annotations": []}]},
]  # fmt: skip


def new_session(url: str) -> BoughSession:
    return BoughSession(f"agents-{secrets.token_hex(4)}", url)


async def test_it_is_a_session_of_the_framework(url: str) -> None:
    assert isinstance(new_session(url), Session)


async def test_items_come_back_as_they_were(url: str) -> None:
    session = new_session(url)
    assert await session.get_items() == []
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert await session.get_items(limit=2) == ITEMS[-2:]
    assert await session.get_items(limit=0) == []


async def test_the_settings_bound_what_is_read(url: str) -> None:
    session = BoughSession(f"agents-{secrets.token_hex(4)}", url, session_settings=SessionSettings(limit=1))
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS[-1:]


async def test_items_that_the_api_does_not_know_are_kept_among_messages(url: str, bough: Bough) -> None:
    session = new_session(url)
    odd: Any = [{"type": "something_new", "deep": {"n": 1.0}}, {"no": "type"}, {"no": "role"}, ITEMS[0]]
    await session.add_items(odd)
    assert await session.get_items() == odd
    messages = [item["message"] for item in bough.session(session.session_id).messages()]
    assert messages[-1]["role"] == "user" and len(messages) == 2


async def test_every_item_is_popped_once_by_four_programs(url: str) -> None:
    name = f"agents-{secrets.token_hex(4)}"
    await BoughSession(name, url).add_items([{"role": "user", "content": str(number)} for number in range(100)])
    popped: list[str] = []

    async def pop() -> None:
        session = BoughSession(name, url)
        while (item := await session.pop_item()) is not None:
            popped.append(str(item["content"]))  # type: ignore[typeddict-item]

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(pop)
    assert sorted(popped, key=int) == [str(number) for number in range(100)]


async def test_a_cleared_session_begins_anew(url: str) -> None:
    session = new_session(url)
    await session.clear_session()
    await session.add_items(ITEMS)
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == ITEMS[:1]


async def test_a_run_is_a_conversation(url: str, bough: Bough) -> None:
    session = new_session(url)
    await session.add_items(ITEMS)
    roles = [item["message"]["role"] for item in bough.session(session.session_id).messages()]
    assert roles == ["user", "assistant", "function_result", "assistant"]

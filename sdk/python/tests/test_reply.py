"""Replies that are written while they are stored."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from bough_server import texts
from boughdb import AsyncBough, Bough, BoughError, Session
from boughdb._deltas import BlockCounter, Delta, DeltaQueue


def last_message(session: Session) -> dict[str, Any]:
    return next(iter(session.messages(order="newest")))["message"]


def test_a_reply_is_finished_with_its_usage(bough: Bough) -> None:
    session = bough.create()
    with session.stream(model="m-1") as reply:
        reply.thinking("hm")
        reply.text("Roses ")
        reply.text("are red")
        reply.finish(usage={"input": 5, "output": 4}, stop_reason="length")
    message = last_message(session)
    assert [(block["type"], block["text"]) for block in message["content"]] == [
        ("thinking", "hm"),
        ("text", "Roses are red"),
    ]
    assert message["stop_reason"] == "length"
    assert session.usage()["session"]["models"]["m-1"]["output"] == 4


def test_a_reply_whose_body_raises_is_finished_as_an_error_with_its_usage(bough: Bough) -> None:
    session = bough.create()
    with pytest.raises(ZeroDivisionError), session.stream(model="m-1") as reply:
        reply.text("half")
        reply.finish(usage={"output": 1})
        _ = 1 / 0
    message = last_message(session)
    assert texts(session) == ["half"]
    assert (message["stop_reason"], message["error_message"]) == ("error", "division by zero")
    assert session.usage()["session"]["total"]["output"] == 1


def test_a_reply_that_is_interrupted_is_aborted(bough: Bough) -> None:
    session = bough.create()
    with pytest.raises(KeyboardInterrupt), session.stream() as reply:
        reply.text("half")
        raise KeyboardInterrupt
    assert last_message(session)["stop_reason"] == "aborted"


def test_what_is_written_quickly_is_joined(bough: Bough) -> None:
    session = bough.create()
    with session.stream(join_interval=60.0) as reply:
        for number in range(1000):
            reply.text(f"{number} ")
    # The beginning of the message, the first delta, the rest in one, and the end.
    assert reply.revision <= 4
    assert texts(session) == ["".join(f"{number} " for number in range(1000))]


def test_watchers_see_the_text_before_the_reply_ends(bough: Bough) -> None:
    session = bough.create()
    with session.watch() as events, session.stream() as reply:
        reply.text("early")
        kinds = [next(events) for _ in range(2)]
    assert [event.type for event in kinds] == ["message.started", "message.delta"]
    assert kinds[1].data["text"] == "early"


def test_a_failed_delta_is_raised_to_the_writer(bough: Bough) -> None:
    session = bough.create()
    with pytest.raises(BoughError):
        with session.stream(join_interval=0.0) as reply:
            reply.text("one")
            session.delete()
            for _ in range(100_000):
                reply.text("two")


@pytest.mark.anyio
async def test_a_cancelled_writer_leaves_an_aborted_reply(url: str) -> None:
    async with AsyncBough(url) as bough:
        session = await bough.create()
        with anyio.CancelScope() as scope:
            async with session.stream() as reply:
                await reply.text("half")
                scope.cancel()
                await anyio.sleep_forever()
        entry = await session.entry(reply.entry_id)
        assert entry["message"]["stop_reason"] == "aborted"
        assert entry["message"]["content"] == [{"type": "text", "text": "half"}]


@pytest.mark.anyio
async def test_a_reply_may_be_written_inside_a_generator(url: str) -> None:
    async with AsyncBough(url) as bough:
        session = await bough.create()

        async def speak() -> Any:
            async with session.stream() as reply:
                for word in ["Roses ", "are ", "red"]:
                    await reply.text(word)
                    yield word

        assert [word async for word in speak()] == ["Roses ", "are ", "red"]
        (item,) = [item async for item in session.messages()]
        assert item["message"]["content"][0]["text"] == "Roses are red"


def test_calls_are_written_piece_by_piece(bough: Bough) -> None:
    session = bough.create()
    with session.stream(model="m-1", join_interval=0.0) as reply:
        reply.text("Let me look.")
        reply.tool_call("c1", "rain", '{"ci')
        reply.tool_arguments('ty": "Oslo"}')
        reply.tool_call("c2", "wind")
        reply.tool_arguments("{}")
        reply.finish(stop_reason="function_call")
    blocks = last_message(session)["content"]
    assert [block["type"] for block in blocks] == ["text", "function_call", "function_call"]
    calls = [(block["id"], block["function_id"], block["arguments"]) for block in blocks[1:]]
    assert calls == [("c1", "rain", {"city": "Oslo"}), ("c2", "wind", {})]


def test_deltas_of_one_block_are_joined_and_others_are_not() -> None:
    queue = DeltaQueue()
    for block, text in [(0, "a"), (0, "b"), (1, "c"), (0, "d")]:
        queue.add(Delta(block, "text", text))
    assert queue.characters == 4
    assert [queue.take() for _ in range(3)] == [Delta(0, "text", "ab"), Delta(1, "text", "c"), Delta(0, "text", "d")]
    assert not queue and queue.characters == 0


def test_text_of_another_kind_begins_a_block() -> None:
    blocks = BlockCounter(1)
    assert [blocks.block("text"), blocks.block("text"), blocks.block("thinking"), blocks.block("text")] == [1, 1, 2, 3]

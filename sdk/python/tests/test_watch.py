"""Live events: nothing is lost and nothing comes twice, over kills of the server."""

from __future__ import annotations

import pytest

from bough_server import Server
from boughdb import AsyncBough, Bough, Retries

PATIENT = Retries(attempts=100, first_pause=0.01, longest_pause=0.1)


def test_a_watch_begins_where_it_is_entered(bough: Bough) -> None:
    session = bough.create()
    session.append("before")
    with session.watch(deltas=False) as events:
        session.append("after")
        event = next(events)
    assert event.data["message"]["content"][0]["text"] == "after"
    assert event.session_id == session.id


def test_a_watch_goes_on_behind_a_cursor(bough: Bough) -> None:
    session = bough.create()
    with session.watch(deltas=False) as events:
        session.append("one")
        cursor = next(events).cursor
    session.append("two")
    with session.watch(after=cursor, deltas=False) as events:
        assert next(events).data["message"]["content"][0]["text"] == "two"


def test_text_with_odd_line_ends_is_one_event(bough: Bough) -> None:
    odd = "a\u2028b\u0085c\rd\r\ne\x0bf"
    session = bough.create()
    with session.watch(deltas=False) as events:
        session.append(odd)
        assert next(events).data["message"]["content"][0]["text"] == odd


def test_nothing_is_lost_or_repeated_when_the_server_is_killed(own_server: Server) -> None:
    with Bough(own_server.url, retries=PATIENT) as bough:
        session = bough.create()
        seen: list[str] = []
        with session.watch(deltas=False) as events:
            for number in range(30):
                session.append(str(number))
                if number % 10 == 5:
                    own_server.kill()
                    own_server.start()
                if number % 3 == 2:
                    seen.extend(next(events).data["message"]["content"][0]["text"] for _ in range(3))
        assert seen == [str(number) for number in range(30)]


def test_a_watch_that_saw_nothing_yet_loses_nothing_when_the_server_is_killed(own_server: Server) -> None:
    with Bough(own_server.url, retries=PATIENT) as bough:
        session = bough.create()
        with session.watch(deltas=False) as events:
            own_server.kill()
            own_server.start()
            session.append("after the restart")
            assert next(events).data["message"]["content"][0]["text"] == "after the restart"


@pytest.mark.anyio
async def test_the_asynchronous_watch_follows_all_sessions(url: str) -> None:
    async with AsyncBough(url) as bough, bough.watch(metadata={"watch": "all"}, deltas=False) as events:
        session = await bough.create("seen", metadata={"watch": "all"})
        await session.append("hello")
        created = await anext(events)
        added = await anext(events)
        assert created.session_id == added.session_id == session.id
        assert added.data["message"]["role"] == "user"

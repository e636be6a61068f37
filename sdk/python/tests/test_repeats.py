"""Requests that are sent again: nothing is stored twice, and what cannot be repaired is not repeated."""

from __future__ import annotations

import httpx
import pytest

from bough_server import QUICK, texts
from boughdb import Bough, BoughError, ConnectionFailed, Forbidden, Unavailable


def test_no_lost_answer_doubles_a_write(lossy: Bough, bough: Bough) -> None:
    session = lossy.create("lossy", metadata={"repeats": "yes"})
    first = session.append("first")["entry_id"]
    session.append_custom("note", {"n": 1})
    session.append_many([{"message": {"role": "user", "content": "second"}}, {"custom": {"custom_type": "note", "data": 2}}])
    fork = session.fork(first)
    session.set_meta(metadata={"city": "Oslo"})

    plain = bough.session(session.id)
    assert texts(plain) == ["first", "second"]
    assert len(plain.entries(custom_type="note")["entries"]) == 2
    assert [meta["session_id"] for meta in bough.list(metadata={"repeats": "yes"})].count(session.id) == 1
    forks = [meta["session_id"] for meta in bough.list(page_size=100) if meta.get("forked_from") == session.id]
    assert forks == [fork.id]
    assert plain.meta()["metadata"] == {"repeats": "yes", "city": "Oslo"}


def test_a_lost_answer_to_a_conditional_move_is_no_conflict(lossy: Bough) -> None:
    session = lossy.create()
    first = session.append("first")["entry_id"]
    second = session.append("second")["entry_id"]
    session.switch_to(first, expected_leaf=second)
    session.switch_to(None, expected_leaf=first)
    assert texts(session) == []


def test_a_reply_is_written_once_over_lost_answers(lossy: Bough, bough: Bough) -> None:
    session = lossy.create()
    with session.stream(model="m-1", join_interval=0.0) as reply:
        for word in ["Roses ", "are ", "red"]:
            reply.text(word)
    assert texts(bough.session(session.id)) == ["Roses are red"]


def answers(*statuses: int) -> tuple[Bough, list[httpx.Request]]:
    """A client whose server answers with these statuses in turn."""
    left = list(statuses)
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        status = left.pop(0)
        problem = {"code": "test/refused", "detail": "no", "hint": ""}
        return httpx.Response(status, json={"session_id": "s", "meta": {}} if status < 400 else problem)

    return Bough("http://test", token="t", transport=httpx.MockTransport(handle), retries=QUICK), seen


def test_a_busy_server_is_asked_again_with_the_same_key() -> None:
    client, seen = answers(503, 502, 201)
    assert client.create().id == "s"
    keys = {request.headers["idempotency-key"] for request in seen}
    assert (len(seen), len(keys)) == (3, 1)
    assert seen[0].headers["authorization"] == "Bearer t"


def test_a_new_request_has_a_new_key() -> None:
    client, seen = answers(201, 201)
    client.create()
    client.create()
    assert len({request.headers["idempotency-key"] for request in seen}) == 2


@pytest.mark.parametrize(("status", "kind"), [(403, Forbidden), (500, BoughError)])
def test_other_refusals_are_raised_at_once(status: int, kind: type[BoughError]) -> None:
    client, seen = answers(status)
    with pytest.raises(kind):
        client.create()
    assert len(seen) == 1


def test_attempts_are_bounded() -> None:
    client, seen = answers(*[503] * QUICK.attempts)
    with pytest.raises(Unavailable):
        client.create()
    assert len(seen) == QUICK.attempts


def test_a_broken_connection_is_an_error_in_the_end() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    client = Bough("http://test", transport=httpx.MockTransport(handle), retries=QUICK)
    with pytest.raises(ConnectionFailed):
        client.session("s").meta()

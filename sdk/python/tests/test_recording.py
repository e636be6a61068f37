"""Recordings of agents over kills of the server."""

from __future__ import annotations

from typing import Any

import pytest

from bough_server import Server
from boughdb import Bough, InvalidRequest, Retries


def loop_events(number: int) -> list[dict[str, Any]]:
    loop_id = f"s.main.{number}"
    said = {"role": "user", "content": [{"type": "text", "text": loop_id}], "timestamp": 1}
    start = {"type": "AgentStart", "agent_id": "agent", "session_id": "s", "loop_id": loop_id}
    end = {"type": "AgentEnd", "loop_id": loop_id, "messages": [said], "usage": {"input": 1, "output": 1}}
    return [
        {**start, "timestamp": f"2026-01-01T00:00:{number:02}Z"},
        {**end, "timestamp": f"2026-01-01T00:01:{number:02}Z"},
    ]


def test_events_that_are_refused_do_not_stop_a_recording(bough: Bough) -> None:
    with bough.record() as recording:
        with pytest.raises(InvalidRequest):
            recording.send([{"type": "AgentStart", "loop_id": 1}])
        recording.send(loop_events(1))
    assert recording.position == 2


def test_a_recording_goes_on_over_kills_in_open_loops(own_server: Server) -> None:
    with Bough(own_server.url, retries=Retries(attempts=100, first_pause=0.01, longest_pause=0.1)) as bough:
        with bough.record("r") as recording:
            for number in range(4):
                start, end = loop_events(number)
                recording.send([start])
                if number % 2 == 0:
                    own_server.kill()
                    own_server.start()
                recording.send([end])
        assert recording.sessions == ["s"]
        loops = bough.send("GET", "/v1/sessions/s/loops")["loops"]
        assert [one["status"] for one in loops] == ["completed"] * 4
        said = [item["message"]["content"][0]["text"] for item in bough.session("s").messages()]
        assert said == [f"s.main.{number}" for number in range(4)]

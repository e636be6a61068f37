# Made from ../_async/recording.py by tools/make_sync.py; change it there.
"""Recording what an agent does, event by event, into sessions of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .._errors import Conflict, ConnectionFailed, InvalidRequest, NotFound, Unavailable
from .._requests import path
from .._runtime_sync import sleep
from .http import Http


class Recording:
    """A recording of an agent's events. Made by `Bough.record`.

    `position` counts the events that are durable. Events of loops that have not ended are kept in memory, because a server that
    was restarted wants them again; it stores none of them twice.
    """

    def __init__(self, http: Http, recording_id: str) -> None:
        self._http = http
        self.recording_id = recording_id
        self.position = 0
        # The events after `_kept_after`, which a restarted server would ask for.
        self._kept: list[Mapping[str, Any]] = []
        self._kept_after = 0
        self.sessions: list[str] = []

    def send(self, events: Sequence[Mapping[str, Any]], *, finish: bool = False) -> None:
        """Records events; they are durable when it returns. `finish` ends the recording."""
        self._kept.extend(events)
        attempt = 0
        while True:
            attempt += 1
            try:
                self._take(self._post(self._known_position(), finish))
                return
            except (ConnectionFailed, Unavailable):
                if attempt >= self._http.retries.attempts:
                    raise
            except InvalidRequest:
                # Events that are refused would be refused again.
                del self._kept[len(self._kept) - len(events) :]
                raise
            except Conflict as conflict:
                # Another server took over between the question and the events.
                if conflict.code != "session/recording_gap" or attempt >= self._http.retries.attempts:
                    raise
            sleep(self._http.retries.pause(attempt))

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.send([], finish=True)

    def _known_position(self) -> int:
        """How many events the server has; a restarted one begins again with those of open loops."""
        try:
            stands = self._http.call("GET", path("record", self.recording_id))
        except NotFound:
            return self._kept_after
        return max(stands["position"], self._kept_after)

    def _post(self, after: int, finish: bool) -> Any:
        sent = {"after": after, "events": self._kept[after - self._kept_after :], "finish": finish}
        return self._http.call_once("POST", path("record", self.recording_id), body=sent)

    def _take(self, answer: Mapping[str, Any]) -> None:
        self.position = answer["position"]
        resume_after = max(answer["resume_after"], self._kept_after)
        del self._kept[: resume_after - self._kept_after]
        self._kept_after = resume_after
        self.sessions.extend(name for name in answer["sessions"] if name not in self.sessions)

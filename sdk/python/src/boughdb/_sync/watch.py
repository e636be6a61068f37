# Made from ../_async/watch.py by tools/make_sync.py; change it there.
"""Live events that go on where they were, over broken connections and restarts of the server."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import closing
from types import TracebackType
from typing import Any

import httpx

from .._errors import ApiError, ConnectionFailed
from .._requests import QueryValue
from .._runtime_sync import sleep
from .._sse import ServerSentEvent, SseDecoder
from .._types import Event
from .http import Http

# How often in a row a connection may fail before a watch gives up: about a minute with the usual pauses.
_FAILURES_MAX = 40


class Watch:
    """An endless iterator of events.

    When the connection breaks, it connects again and goes on behind the last event, so that none is lost and none comes
    twice. `cursor` is the position: keep it to go on in another process.

    Used with `with`, events that happen from then on are seen; without it, from the first step on.
    """

    def __init__(self, http: Http, path: str, params: Mapping[str, QueryValue], session_id: str | None) -> None:
        self._http = http
        self._path = path
        self._params = dict(params)
        self._session_id = session_id
        after = params.get("after")
        self.cursor: str | None = after if isinstance(after, str) else None
        self._started_at: str | None = None
        self._events = self._run()

    def __enter__(self) -> Watch:
        if self.cursor is None and self._started_at is None:
            self._started_at = self._position()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Event:
        return self._events.__next__()

    def close(self) -> None:
        """Closes the connection."""
        self._events.close()

    def _position(self) -> str:
        """Asks where the feed is now, so that a connection that breaks before its first event can be resumed."""
        answer = self._http.call("GET", "/v1/watch", params={"session_id": self._session_id, "limit": 1})
        return str(answer["next"])

    def _run(self) -> Generator[Event, None, None]:
        self.__enter__()
        failures = 0
        while True:
            error: Exception | None = None
            try:
                with closing(self._connection()) as events:
                    for event in events:
                        failures = 0
                        yield event
            except httpx.TransportError as broken:
                error = broken
            except ApiError as refused:
                if not refused.is_transient:
                    raise
                error = refused
            failures += 1
            if failures >= _FAILURES_MAX:
                raise ConnectionFailed(f"GET {self._path}: the stream could not be opened again") from error
            sleep(self._http.retries.pause(failures))

    def _connection(self) -> Generator[Event, None, None]:
        """The events of one connection; it ends when the server ends the stream."""
        params = {**self._params, "after": self.cursor or self._started_at}
        decoder = SseDecoder()
        with self._http.stream(self._path, params) as pieces:
            for piece in pieces:
                for sent in decoder.feed(piece):
                    # Set before the event is given away: whoever takes it may stop there.
                    self.cursor = sent.id or self.cursor
                    yield _event(sent, self._session_id)
                self.cursor = decoder.last_id or self.cursor


def _event(sent: ServerSentEvent, session_id: str | None) -> Event:
    data: dict[str, Any] = json.loads(sent.data)
    payload: dict[str, Any] = data.get("payload", data)
    return Event(sent.name, sent.id, payload.get("session_id") or session_id or "", payload)

"""Live events that go on where they were, over broken connections and restarts of the server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any

import httpx

from .._errors import ApiError, ConnectionFailed
from .._requests import QueryValue
from .._runtime_async import sleep
from .._sse import ServerSentEvent, SseDecoder
from .._types import Event
from .http import AsyncHttp

# How often in a row a connection may fail before a watch gives up: about a minute with the usual pauses.
_FAILURES_MAX = 40


class AsyncWatch:
    """An endless iterator of events.

    When the connection breaks, it connects again and goes on behind the last event, so that none is lost and none comes
    twice. `cursor` is the position: keep it to go on in another process.

    Used with `async with`, events that happen from then on are seen; without it, from the first step on.
    """

    def __init__(self, http: AsyncHttp, path: str, params: Mapping[str, QueryValue], session_id: str | None) -> None:
        self._http = http
        self._path = path
        self._params = dict(params)
        self._session_id = session_id
        after = params.get("after")
        self.cursor: str | None = after if isinstance(after, str) else None
        self._started_at: str | None = None
        self._events = self._run()

    async def __aenter__(self) -> AsyncWatch:
        if self.cursor is None and self._started_at is None:
            self._started_at = await self._position()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def close(self) -> None:
        """Closes the connection."""
        await self._events.aclose()

    async def _position(self) -> str:
        """Asks where the feed is now, so that a connection that breaks before its first event can be resumed."""
        answer = await self._http.call("GET", "/v1/watch", params={"session_id": self._session_id, "limit": 1})
        return str(answer["next"])

    async def _run(self) -> AsyncGenerator[Event, None]:
        await self.__aenter__()
        failures = 0
        while True:
            error: Exception | None = None
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
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
            await sleep(self._http.retries.pause(failures))

    async def _connection(self) -> AsyncGenerator[Event, None]:
        """The events of one connection; it ends when the server ends the stream."""
        params = {**self._params, "after": self.cursor or self._started_at}
        decoder = SseDecoder()
        async with self._http.stream(self._path, params) as pieces:
            async for piece in pieces:
                for sent in decoder.feed(piece):
                    # Set before the event is given away: whoever takes it may stop there.
                    self.cursor = sent.id or self.cursor
                    yield _event(sent, self._session_id)
                self.cursor = decoder.last_id or self.cursor


def _event(sent: ServerSentEvent, session_id: str | None) -> Event:
    data: dict[str, Any] = json.loads(sent.data)
    payload: dict[str, Any] = data.get("payload", data)
    return Event(sent.name, sent.id, payload.get("session_id") or session_id or "", payload)

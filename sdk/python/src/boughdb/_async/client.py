"""The client."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import httpx

from .._local import AsyncLocalTransport, LocalServer
from .._requests import Retries, body, new_id, new_key, path
from .._settings import DEFAULT_TIMEOUT, Settings
from .._types import Role, SearchResult, SessionMeta, Status
from .documents import AsyncDocuments
from .http import AsyncHttp
from .recording import AsyncRecording
from .session import AsyncSession
from .watch import AsyncWatch


class AsyncBough:
    """A client of a Bough server.

    Keep one for the whole program: it holds a pool of connections. Requests that fail on the way are sent again, and no
    repetition stores anything twice.

    >>> async with AsyncBough(url) as bough:
    ...     session = await bough.create("Weather")
    ...     _ = await session.append("Will it rain?")
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Makes a client of the server at `url`, by default `BOUGH_SERVER` of the environment, then this machine's own.

        `token` is by default `BOUGH_TOKEN` of the environment. A request may take `timeout` seconds. `transport` replaces the
        network, for tests.
        """
        self.settings = Settings.of(url, token, timeout, retries)
        self._http = _connect(self.settings, transport)

    @classmethod
    def local(
        cls,
        path: str | os.PathLike[str],
        *,
        idle_exit: int = 60,
        timeout: float = DEFAULT_TIMEOUT,
        retries: Retries | None = None,
    ) -> AsyncBough:
        """Makes a client of a server on a data directory of this machine, which is started with the first request.

        Programs that name the same directory share one server. It ends `idle_exit` seconds after its last client, and is started
        again when it is needed. The program is the one that `BOUGH` of the environment names, or `bough` on the `PATH`.

        >>> async with AsyncBough.local(folder) as bough:
        ...     session = await bough.create("Weather")
        """
        return cls.with_settings(Settings.of_server(LocalServer.at(path, idle_exit), timeout, retries))

    @classmethod
    def with_settings(cls, settings: Settings) -> AsyncBough:
        """Makes a client with the settings of another one, which may be its twin."""
        client = cls.__new__(cls)
        client.settings = settings
        client._http = _connect(settings, AsyncLocalTransport(settings.server) if settings.server is not None else None)
        return client

    async def __aenter__(self) -> AsyncBough:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def create(
        self, title: str | None = None, *, description: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> AsyncSession:
        """Creates a session with an id that the server draws.

        >>> session = await bough.create("Weather", metadata={"user": "u1"})
        >>> (await session.meta())["title"]
        'Weather'
        """
        sent = body(title=title, description=description, metadata=metadata)
        answer = await self._http.call("POST", path("sessions"), body=sent, key=new_key())
        return AsyncSession(self._http, answer["session_id"])

    async def ensure(
        self,
        session_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncSession:
        """Makes sure that a session with this id exists; the other arguments count only when it is created."""
        sent = body(title=title, description=description, metadata=metadata)
        await self._http.call("PUT", path("sessions", session_id), body=sent)
        return AsyncSession(self._http, session_id)

    def session(self, session_id: str) -> AsyncSession:
        """Names a session, without asking whether it exists."""
        return AsyncSession(self._http, session_id)

    def documents(self, scope: str) -> AsyncDocuments:
        """Names a scope of documents by key, without asking whether it has any."""
        return AsyncDocuments(self._http, scope)

    def list(
        self,
        *,
        status: Status | None = None,
        metadata: Mapping[str, Any] | None = None,
        id_prefix: str | None = None,
        query: str | None = None,
        order: str | None = None,
        archived: Literal["exclude", "include", "only"] | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[SessionMeta]:
        """The sessions, the most recently changed first. Pages are read as they are needed.

        >>> _ = await bough.create("Weather", metadata={"user": "u7"})
        >>> [meta["title"] async for meta in bough.list(metadata={"user": "u7"})]
        ['Weather']
        """
        params = {
            "status": status,
            "metadata": metadata,
            "id_prefix": id_prefix,
            "query": query,
            "order": order,
            "archived": archived,
            "limit": page_size,
        }
        return self._http.pages(path("sessions"), "sessions", params)

    async def search(
        self,
        query: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        by_session: bool | None = None,
    ) -> SearchResult:
        """Searches everything that was said: words, "a phrase", -not, and filters such as `role:user` or `after:3d`.

        With `by_session` each session is found once, with its `details`.
        """
        params = {"query": query, "metadata": metadata, "limit": limit, "cursor": cursor, "by_session": by_session}
        return await self._http.call("GET", path("search"), params=params)

    def watch(
        self,
        *,
        after: str | None = None,
        types: Sequence[str] | None = None,
        roles: Sequence[Role] | None = None,
        metadata: Mapping[str, Any] | None = None,
        deltas: bool = True,
    ) -> AsyncWatch:
        """Follows all sessions: an endless iterator of events that goes on over broken connections and restarts."""
        params = {
            "after": after,
            "types": types,
            "roles": roles,
            "metadata": metadata,
            "deltas": None if deltas else "off",
        }
        return AsyncWatch(self._http, path("events"), params, None)

    def record(self, recording_id: str | None = None) -> AsyncRecording:
        """Begins a recording of an agent's events, which become sessions of loops; it ends with the block.

        >>> usage = {"input": 1, "output": 1}
        >>> when = "2026-01-01T00:00:00Z"
        >>> start = {"type": "AgentStart", "agent_id": "a", "session_id": "rec", "loop_id": "rec.a.1", "timestamp": when}
        >>> said = {"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1}
        >>> end = {"type": "AgentEnd", "loop_id": "rec.a.1", "messages": [said], "usage": usage, "timestamp": when}
        >>> async with bough.record() as recording:
        ...     await recording.send([start, end])
        >>> recording.sessions
        ['rec']
        """
        return AsyncRecording(self._http, recording_id or new_id("recording"))

    async def undelete(self, session_id: str) -> AsyncSession:
        """Brings a deleted session back."""
        await self._http.call("POST", path("trash", session_id, "undelete"), body={})
        return AsyncSession(self._http, session_id)

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Sends any request of the API, such as `send("GET", "/v1/search/status")`, and returns the JSON of the answer.

        It is sent again after a broken connection, so a write needs ids of its own or an idempotency `key`.
        """
        return await self._http.call(method, path, params=params, body=body, key=key)


def _connect(settings: Settings, transport: httpx.AsyncBaseTransport | None) -> AsyncHttp:
    client = httpx.AsyncClient(
        base_url=settings.url,
        headers=settings.headers(),
        timeout=settings.timeout,
        transport=transport,
        # Certificates take long to load, and a plain address has none to check.
        verify=settings.url.startswith("https:"),
    )
    return AsyncHttp(client, settings.retries)

"""What the adapters of frameworks share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from anyio.lowlevel import RunVar

from ._async.client import AsyncBough
from ._async.session import AsyncSession
from ._errors import InvalidRequest
from ._settings import Settings
from ._sync.client import Bough
from ._types import NewEntry

UrlOrClient = str | Bough | AsyncBough | None
"""What an adapter is made with: the address of a server, a client of either kind, or nothing for the usual server."""


class Clients:
    """The clients of an adapter: a blocking one, and an asynchronous one for each event loop.

    A client that was given is used as it is, and not closed.
    """

    def __init__(self, url_or_client: UrlOrClient) -> None:
        self._sync = url_or_client if isinstance(url_or_client, Bough) else None
        self._async = url_or_client if isinstance(url_or_client, AsyncBough) else None
        given = self._sync or self._async
        self.settings = given.settings if given is not None else Settings.of(_url(url_or_client))
        self._of_loop: RunVar[AsyncBough] = RunVar(f"boughdb.{id(self)}")

    @property
    def blocking(self) -> Bough:
        """The blocking client."""
        if self._sync is None:
            self._sync = Bough.with_settings(self.settings)
        return self._sync

    @property
    def asynchronous(self) -> AsyncBough:
        """The asynchronous client. Connections belong to the event loop that opened them, so that each loop has its own."""
        if self._async is not None:
            return self._async
        client = self._of_loop.get(None)
        if client is None:
            client = AsyncBough.with_settings(self.settings)
            self._of_loop.set(client)
        return client


async def append_messages(
    session: AsyncSession, entries: Sequence[NewEntry], as_custom: Callable[[int], NewEntry], **more: Any
) -> None:
    """Appends entries in one commit. Messages that the server does not understand are kept as custom entries, which `as_custom`
    makes by their place."""
    batch = list(entries)
    while True:
        try:
            await session.append_many(batch, **more)
            return
        except InvalidRequest as error:
            refused = [place for place in _places(error) if "message" in batch[place]]
            if not refused:
                raise
            for place in refused:
                batch[place] = as_custom(place)


def _places(error: InvalidRequest) -> list[int]:
    """The entries of a batch that are at fault."""
    found = (re.match(r"/entries/(\d+)/message", str(one.get("path"))) for one in error.errors)
    return [int(match[1]) for match in found if match]


def _url(url_or_client: UrlOrClient) -> str | None:
    return url_or_client if isinstance(url_or_client, str) else None

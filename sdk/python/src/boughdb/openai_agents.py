"""Sessions of the OpenAI Agents SDK.

    from agents import Agent, Runner
    from boughdb.openai_agents import BoughSession

    session = BoughSession("user-1", "http://127.0.0.1:7717")
    await Runner.run(agent, "Will it rain?", session=session)

Items of the run are messages of a session of the same id: they are read, branched and watched as those of any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from ._adapters import Clients, UrlOrClient, append_messages
from ._async.session import AsyncSession
from ._errors import LeafConflict, NotFound
from ._types import Entry, NewEntry

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

_FORMAT = "openai-responses"
_OPAQUE = "openai-agents.item"


class BoughSession(SessionABC):
    """A session of the OpenAI Agents SDK that is kept by Bough.

    Several programs may use one session at the same time: each item is popped once. Items that were popped or cleared leave
    the active path; they stay in the tree of the session until it is deleted.
    """

    def __init__(
        self,
        session_id: str,
        url_or_client: UrlOrClient = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._clients = Clients(url_or_client)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items, or the newest ones, oldest first."""
        wanted = resolve_session_limit(limit, self.session_settings)
        if wanted is not None and wanted <= 0:
            return []
        newest: list[TResponseInputItem] = []
        page_size = None if wanted is None else min(wanted, _PAGE_MAX)
        try:
            async for entry in self._session.messages(
                format=_FORMAT, include_custom=True, order="newest", page_size=page_size or _PAGE_MAX
            ):
                newest.append(_item(entry))
                if len(newest) == wanted:
                    break
        except NotFound:
            return []
        return newest[::-1]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items, all of them or none."""
        if not items:
            return
        plain = [cast("dict[str, Any]", item) for item in items]

        # The framework lets programs keep items that the API does not know.
        def opaque(place: int) -> NewEntry:
            return {"custom": {"custom_type": _OPAQUE, "data": plain[place]}}

        await append_messages(self._session, [{"message": item, "format": _FORMAT} for item in plain], opaque, create=True)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item away and returns it. Of several callers at once, each gets another one."""
        while True:
            entry = await self._last()
            if entry is None:
                return None
            try:
                await self._session.switch_to(entry.get("parent_id"), expected_leaf=entry["entry_id"])
            except LeafConflict:
                continue
            return _item(entry)

    async def clear_session(self) -> None:
        """Takes all items away."""
        try:
            await self._session.switch_to(None)
        except NotFound:
            return

    @property
    def _session(self) -> AsyncSession:
        return self._clients.asynchronous.session(self.session_id)

    async def _last(self) -> Entry | None:
        try:
            async for entry in self._session.messages(format=_FORMAT, include_custom=True, order="newest", page_size=1):
                return entry
        except NotFound:
            pass
        return None


# How many items are asked for at once.
_PAGE_MAX = 500


def _item(entry: Entry) -> TResponseInputItem:
    item: Any = entry["custom"]["data"] if "custom" in entry else entry.get("message")
    return item

"""The session store of the Claude Agent SDK.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from boughdb.claude_agent import BoughSessionStore

    options = ClaudeAgentOptions(session_store=BoughSessionStore("http://127.0.0.1:7717"))

Each transcript is a session of Bough: what the user and the model said are its messages, and other lines are custom
entries between them.
"""

from __future__ import annotations

from typing import Any, cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from ._adapters import Clients, UrlOrClient, append_messages
from ._async.session import AsyncSession
from ._errors import LeafConflict, NotFound
from ._types import Entry, NewEntry, SessionMeta

_FORMAT = "anthropic"
_OPAQUE = "claude-agent.line"
# Where a message keeps the rest of the line that it came in.
_LINE = "claude_agent_line"
# How many lines are asked for at once.
_PAGE = 500


class BoughSessionStore(SessionStore):
    """Keeps transcripts of the Claude Agent SDK in Bough.

    Stores with another `prefix` do not see each other's transcripts. Deleted ones are in the trash of the server for a while.
    """

    def __init__(self, url_or_client: UrlOrClient = None, *, prefix: str = "claude") -> None:
        self._clients = Clients(url_or_client)
        self._prefix = prefix

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Appends lines in one commit. A line whose `uuid` is there already is left out."""
        lines = [cast("dict[str, Any]", entry) for entry in entries]
        while lines:
            try:
                await self._append(key, lines)
                return
            except LeafConflict:
                # Another process appended meanwhile; the summary is folded again on top of what it wrote.
                continue

    async def _append(self, key: SessionKey, lines: list[dict[str, Any]]) -> None:
        session = self._session(key)
        meta = await _meta(session)
        new = lines if meta is None else await _unknown(session, lines)
        if not new:
            return
        leaf = (meta.get("active_leaf") if meta is not None else None) or ""
        change = {"metadata": self._metadata(key, meta, new)}
        batch = [_message(line) if _is_message(line) else _custom(line) for line in new]
        # A line may hold a message that the API would not take; it is kept all the same.
        await append_messages(session, batch, lambda place: _custom(new[place]), create=True, expected_leaf=leaf, meta=change)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Returns all lines of a transcript, or `None` when it was never written."""
        found = self._session(key).messages(format=_FORMAT, include_custom=True, page_size=_PAGE)
        try:
            return [_line(entry) async for entry in found]
        except NotFound:
            return None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Returns the transcripts of a project, without those of its subagents."""
        metas = await self._list(project_key=project_key, subpath="")
        return [{"session_id": _of(meta, "session"), "mtime": meta["updated_at"]} for meta in metas]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Returns the summaries of a project's transcripts."""
        metas = await self._list(project_key=project_key, subpath="")
        return [_summary(meta) for meta in metas]

    async def delete(self, key: SessionKey) -> None:
        """Deletes a transcript; one without a `subpath` with all of its subagents'."""
        if key.get("subpath"):
            await self._session(key).delete()
            return
        for meta in await self._list(project_key=key["project_key"], session=key["session_id"]):
            await self._clients.asynchronous.session(meta["session_id"]).delete()

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Returns the subpaths of a transcript."""
        metas = await self._list(project_key=key["project_key"], session=key["session_id"])
        return [subpath for subpath in (_of(meta, "subpath") for meta in metas) if subpath]

    def _session(self, key: SessionKey) -> AsyncSession:
        parts = [self._prefix, key["project_key"], key["session_id"], key.get("subpath") or ""]
        return self._clients.asynchronous.session("/".join(parts).rstrip("/"))

    async def _list(self, **members: str) -> list[SessionMeta]:
        wanted = {_NAMES["store"]: self._prefix, **{_NAMES[name]: value for name, value in members.items()}}
        return [meta async for meta in self._clients.asynchronous.list(metadata=wanted, archived="include", page_size=_PAGE)]

    def _metadata(self, key: SessionKey, meta: SessionMeta | None, lines: list[dict[str, Any]]) -> dict[str, Any]:
        """What lists find a transcript by, and its summary, which the SDK folds and only the SDK understands."""
        metadata: dict[str, Any] = {
            _NAMES["store"]: self._prefix,
            _NAMES["project_key"]: key["project_key"],
            _NAMES["session"]: key["session_id"],
            _NAMES["subpath"]: key.get("subpath") or "",
        }
        if not key.get("subpath"):
            before = _summary(meta) if meta is not None else None
            folded = fold_session_summary(before, key, cast("list[SessionStoreEntry]", lines))
            metadata[_NAMES["summary"]] = folded["data"]
        return metadata


_NAMES = {name: f"claude_agent_{name}" for name in ("store", "project_key", "session", "subpath", "summary")}


def _of(meta: SessionMeta, name: str) -> Any:
    return meta.get("metadata", {}).get(_NAMES[name])


def _summary(meta: SessionMeta) -> SessionSummaryEntry:
    return {"session_id": _of(meta, "session"), "mtime": meta["updated_at"], "data": _of(meta, "summary") or {}}


async def _meta(session: AsyncSession) -> SessionMeta | None:
    try:
        return await session.meta()
    except NotFound:
        return None


async def _unknown(session: AsyncSession, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines that are not there yet, by their `uuid`; lines without one are always new."""
    named = [line["uuid"] for line in lines if line.get("uuid")]
    known: set[str] = set()
    for start in range(0, len(named), _IDS_AT_ONCE):
        page = await session.entries(ids=named[start : start + _IDS_AT_ONCE])
        known.update(entry["entry_id"] for entry in page["entries"])
    return [line for line in lines if line.get("uuid") not in known]


# How many ids fit into one address.
_IDS_AT_ONCE = 100


def _is_message(line: dict[str, Any]) -> bool:
    message: Any = line.get("message")
    if not isinstance(message, dict):
        return False
    said = cast("dict[str, Any]", message)
    return said.get("role") in ("user", "assistant") and _LINE not in said


def _message(line: dict[str, Any]) -> NewEntry:
    rest = {name: value for name, value in line.items() if name != "message"}
    return _named(line, {"message": {**line["message"], _LINE: rest}, "format": _FORMAT})


def _custom(line: dict[str, Any]) -> NewEntry:
    return _named(line, {"custom": {"custom_type": _OPAQUE, "data": line}})


def _named(line: dict[str, Any], entry: NewEntry) -> NewEntry:
    if line.get("uuid"):
        entry["entry_id"] = line["uuid"]
    return entry


def _line(entry: Entry) -> SessionStoreEntry:
    if "custom" in entry:
        return entry["custom"]["data"]
    message = dict(entry.get("message", {}))
    rest: dict[str, Any] = message.pop(_LINE)
    return cast("SessionStoreEntry", {**rest, "message": message})

"""A conversation store for Pydantic AI.

    from boughdb.pydantic_ai import BoughConversationStore

    store = BoughConversationStore("http://127.0.0.1:7717")
    conversation = await store.load("user-1") or Conversation(conversation_id="user-1")
    result = await agent.run("Will it rain?", conversation=conversation)
    await store.save(result)

Each conversation is a session of Bough, and each message of it is an entry with the id that Pydantic AI gave it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ._adapters import Clients, UrlOrClient
from ._async.session import AsyncSession
from ._errors import Conflict, InvalidRequest, LeafConflict, NotFound
from ._types import Entry, NewEntry

_RECORD = "pydantic-ai.record"
_DELETED = "pydantic-ai.deleted"
# Where a message keeps what Pydantic AI knows of it.
_MEMBER = "pydantic_ai"
_STORE = "pydantic_ai_store"
_SCOPE = "pydantic_ai_scope"
_PAGE = 500
# How many entries a store remembers the conversation of.
_PLACES_MAX = 10_000

_messages: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)
_records: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class BoughConversationStore(ConversationStore):
    """Keeps conversations of Pydantic AI in Bough.

    A fork is a copy of the history that it shares, so that each conversation can be read and deleted by itself. Deleted ones
    are in the trash of the server for a while, with their messages.
    """

    def __init__(self, url_or_client: UrlOrClient = None, *, prefix: str = "pydantic-ai/") -> None:
        self._clients = Clients(url_or_client)
        self._prefix = prefix
        self._places: OrderedDict[str, str] = OrderedDict()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Reads the record of a conversation."""
        return await self._record(self._session(conversation_id))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Reads the records of all conversations, the most recently saved first."""
        wanted = {_STORE: self._prefix} if scope is None else {_STORE: self._prefix, _SCOPE: scope}
        records: list[ConversationRecord] = []
        async for meta in self._clients.asynchronous.list(metadata=wanted, archived="include", page_size=_PAGE):
            if limit is not None and len(records) >= limit:
                break
            record = await self._record(self._clients.asynchronous.session(meta["session_id"]))
            if record is not None:
                records.append(record)
        return sorted(records, key=lambda record: record.updated_at, reverse=True)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores a record and its new entries in one commit, or neither."""
        session = self._session(record.conversation_id)
        expected = _marker(expected_revision) if expected_revision is not None else ""
        shared = await self._shared_history(record) if expected_revision is None else []
        batch = [_new_entry(entry) for entry in (*shared, *new_entries)]
        batch.append(_new_custom(_marker(record.revision), _RECORD, _records.dump_python(record, mode="json"), record.head_id))
        meta = {"title": record.conversation_id, "metadata": {_STORE: self._prefix, _SCOPE: record.scope}}
        try:
            await self._append(session, batch, expected, expected_revision, meta)
        except (Conflict, InvalidRequest) as error:
            raise ConversationConflict(record.conversation_id) from error
        self._learn(record, [entry.id for entry in new_entries])

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Moves a conversation to the trash."""
        session = self._session(conversation_id)
        claim = [_new_custom(_marker(expected_revision) + "-deleted", _DELETED, None, None)]
        try:
            # Whoever appends this has the conversation: a save at the same time fails.
            await self._append(session, claim, _marker(expected_revision), expected_revision, None)
        except (Conflict, NotFound) as error:
            raise ConversationConflict(conversation_id) from error
        await session.delete()

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Reads one entry of any conversation; raises `LookupError` when there is none."""
        session = await self._session_of(entry_id)
        try:
            return _entry(await session.entry(entry_id))
        except NotFound as error:
            raise LookupError(entry_id) from error

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Reads the entries up to one, in pages of many."""
        if head_id is None or limit == 0:
            return []
        return await self._history(await self._session_of(head_id), head_id, limit)

    async def _history(self, session: AsyncSession, head_id: str, limit: int | None) -> list[ConversationEntry]:
        newest: list[ConversationEntry] = []
        page_size = _PAGE if limit is None else min(limit, _PAGE)
        try:
            async for item in session.messages(from_entry_id=head_id, order="newest", page_size=page_size):
                newest.append(_entry(item))
                if newest[-1].parent_id is None or len(newest) == limit:
                    break
        except NotFound as error:
            raise LookupError(head_id) from error
        return newest[::-1]

    def _session(self, conversation_id: str) -> AsyncSession:
        return self._clients.asynchronous.session(self._prefix + conversation_id)

    async def _record(self, session: AsyncSession) -> ConversationRecord | None:
        try:
            page = await session.entries(custom_type=_RECORD, order="newest", limit=1)
        except NotFound:
            return None
        for entry in page["entries"]:
            record = _records.validate_python(entry["custom"]["data"] if "custom" in entry else None)
            self._learn(record, [])
            return record
        return None

    async def _append(
        self,
        session: AsyncSession,
        batch: list[NewEntry],
        expected_leaf: str,
        expected_revision: str | None,
        meta: dict[str, Any] | None,
    ) -> None:
        """Appends behind the record that is expected. Somebody may have moved the leaf, which is no change of the record."""
        try:
            await session.append_many(batch, create=meta is not None, expected_leaf=expected_leaf, meta=meta)
        except LeafConflict as conflict:
            record = await self._record(session)
            if (record.revision if record is not None else None) != expected_revision:
                raise
            await session.append_many(batch, expected_leaf=conflict.active_leaf or "", meta=meta)

    async def _shared_history(self, record: ConversationRecord) -> list[ConversationEntry]:
        """The entries that a new fork shares with the conversation that it was forked from."""
        if record.forked_from is None or record.head_id is None:
            return []
        try:
            return await self._history(self._session(record.forked_from), record.head_id, None)
        except LookupError as error:
            raise ConversationConflict(record.conversation_id) from error

    def _learn(self, record: ConversationRecord, entry_ids: list[str]) -> None:
        """Remembers in which conversation entries are: the framework asks for them by their ids alone."""
        for entry_id in [*entry_ids, *record.branches, record.forked_at, record.head_id]:
            if entry_id is not None:
                self._places[entry_id] = record.conversation_id
                self._places.move_to_end(entry_id)
        while len(self._places) > _PLACES_MAX:
            self._places.popitem(last=False)

    async def _session_of(self, entry_id: str) -> AsyncSession:
        """The session of an entry; one that this store has not met is looked for in all conversations."""
        if entry_id in self._places:
            return self._session(self._places[entry_id])
        client = self._clients.asynchronous
        async for meta in client.list(metadata={_STORE: self._prefix}, archived="include", page_size=_PAGE):
            session = client.session(meta["session_id"])
            if (await session.entries(ids=[entry_id]))["entries"]:
                return session
        raise LookupError(entry_id)


def _marker(revision: str) -> str:
    return f"record-{revision}"


def _new_custom(entry_id: str, custom_type: str, data: Any, parent_id: str | None) -> NewEntry:
    entry: NewEntry = {"entry_id": entry_id, "custom": {"custom_type": custom_type, "data": data}}
    if parent_id is not None:
        entry["parent_id"] = parent_id
    return entry


def _new_entry(entry: ConversationEntry) -> NewEntry:
    kept = {"parent_id": entry.parent_id, "message": _messages.dump_python(entry.message, mode="json")}
    new: NewEntry = {"entry_id": entry.id, "message": {**_readable(entry.message), _MEMBER: kept}}
    if entry.parent_id is not None:
        new["parent_id"] = entry.parent_id
    return new


def _entry(item: Entry) -> ConversationEntry:
    kept: dict[str, Any] = item.get("message", {})[_MEMBER]
    message = _messages.validate_python(kept["message"])
    return ConversationEntry(id=item["entry_id"], parent_id=kept["parent_id"], message=message)


def _readable(message: ModelMessage) -> dict[str, Any]:
    """The message as people read it in Bough."""
    blocks = [block for part in message.parts for block in _blocks(part)]
    if isinstance(message, ModelResponse):
        usage = {"input": message.usage.input_tokens, "output": message.usage.output_tokens}
        said: dict[str, Any] = {"role": "assistant", "content": blocks, "usage": usage}
        return said if message.model_name is None else {**said, "model": message.model_name}
    (part,) = message.parts if len(message.parts) == 1 else (None,)
    if isinstance(part, ToolReturnPart):
        text = [{"type": "text", "text": part.model_response_str()}]
        return {"role": "function_result", "function_call_id": part.tool_call_id, "function_id": part.tool_name, "content": text}
    return {"role": "user", "content": blocks}


def _blocks(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, (TextPart, ThinkingPart)):
        return [{"type": "text" if isinstance(part, TextPart) else "thinking", "text": part.content}]
    if isinstance(part, ToolCallPart):
        arguments = part.args_as_dict()
        return [{"type": "function_call", "id": part.tool_call_id, "function_id": part.tool_name, "arguments": arguments}]
    if isinstance(part, ToolReturnPart):
        content = [{"type": "text", "text": part.model_response_str()}]
        return [{"type": "function_result", "function_call_id": part.tool_call_id, "content": content}]
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return [{"type": "text", "text": piece} for piece in part.content if isinstance(piece, str)]
    content = getattr(part, "content", None)
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []

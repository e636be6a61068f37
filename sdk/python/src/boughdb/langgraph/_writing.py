"""Storing checkpoints and the writes of tasks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .._errors import InvalidRequest
from .._operations import Call, Operation
from .._requests import body, new_key, path
from .._types import NewEntry
from ._documents import CHECKPOINT, WRITES, Encoder, checkpoint_members, new_document, refer_to
from ._ids import new_id_of, short_id
from ._line import Line
from ._messages import Serde, is_readable
from ._shorthand import short_members, short_metadata, short_seen
from ._threads import PREFIX, THREAD, Known, Namespace, NewWrites, Threads


@dataclass(frozen=True)
class NewCheckpoint:
    """A checkpoint to store, below the one that `parent_id` names."""

    parent_id: str | None
    checkpoint: Checkpoint
    metadata: dict[str, Any]
    new_versions: ChannelVersions


class Writer:
    """Writes to one namespace of a thread."""

    def __init__(self, threads: Threads, thread_id: str, namespace: str, serde: Serde) -> None:
        self._threads = threads
        self._thread_id = thread_id
        self._namespace = namespace
        self._serde = serde
        # Other serializers than the usual one encrypt values, for instance: nothing of those is stored readably.
        self._is_readable = type(serde) is JsonPlusSerializer

    def put(self, new: NewCheckpoint) -> Operation[None]:
        """Stores a checkpoint."""
        early = self._threads.take_early(self._thread_id, self._namespace, new.checkpoint["id"])
        yield from self._again(lambda: self._put(new, early))

    def put_writes(self, new: NewWrites) -> Operation[None]:
        """Stores the writes of a task."""
        yield from self._again(lambda: self._put_writes(new))

    def _again(self, write: Callable[[], Operation[None]]) -> Operation[None]:
        """Does a write; when what is remembered of the thread is wrong, forgets it and does the write once more."""
        try:
            yield from write()
        except InvalidRequest as error:
            self._threads.forget(self._thread_id)
            if error.code != "session/parent_not_found":
                raise
            yield from write()

    def _put(self, new: NewCheckpoint, early: list[NewWrites]) -> Operation[None]:
        parent = (yield from self._known(new.parent_id)) if new.parent_id is not None else None
        line = parent.line.copy() if parent is not None else Line()
        channel = self._message_channel(new.checkpoint["channel_values"], parent)
        messages: list[BaseMessage] = new.checkpoint["channel_values"][channel] if channel is not None else []
        batch = line.hold(messages, self._serde)
        ids = line.ids_to_say()
        place, line.tail = line.tail, new_id_of(self._namespace, new.checkpoint["id"])
        entry_id = line.tail
        encoder = Encoder(line, self._serde, self._is_readable)
        below = short_id(new.parent_id) if new.parent_id else None
        document = body(p=below, ns=self._namespace or None, ids=ids or None)
        document |= self._document(new, channel, parent, encoder)
        batch += [new_document(entry_id, CHECKPOINT, document, place), *encoder.ahead]
        for writes in early:
            batch += self._entries_of(writes, line, channel or _conversation(parent))
        yield from self._append(batch, is_new=parent is None)
        self._remembered.remember(new.checkpoint["id"], Known(entry_id, deepcopy(document), line))
        self._remembered.is_own = True

    def _document(self, new: NewCheckpoint, channel: str | None, parent: Known | None, encoder: Encoder) -> dict[str, Any]:
        """What a checkpoint says. Of the channel with the messages it says only how many there are."""

        def stored(name: str, value: Any) -> dict[str, Any]:
            if name == channel:
                return {"n": len(value)}
            before = _unchanged(name, new.checkpoint, parent) if name not in new.new_versions else None
            return before or encoder.encode(value, goes_on_line=name == "__start__")

        return {
            "cv": new.checkpoint["channel_versions"],
            "vs": short_seen(cast("dict[str, dict[str, Any]]", new.checkpoint["versions_seen"])),
            "c": {name: stored(name, value) for name, value in new.checkpoint["channel_values"].items()},
            "x": short_members(encoder.encode(checkpoint_members(cast("dict[str, Any]", new.checkpoint)))),
            "md": short_metadata(encoder.encode(new.metadata)),
        }

    def _put_writes(self, new: NewWrites) -> Operation[None]:
        # The framework stores a step, what it writes and the next step at the same time. When the next step is there, the
        # messages of the writes are on its line, or never will be.
        late = self._remembered.newest_below(new.checkpoint_id)
        known = late or (yield from self._known(new.checkpoint_id))
        if known is None and self._remembered.is_own:
            self._threads.keep_early(self._thread_id, self._namespace, new)
            return
        is_next = known is not None and late is None
        known = known or self._remembered.newest
        line = known.line if known is not None else Line()
        batch = self._entries_of(new, line, _conversation(known) if is_next else None)
        yield from self._append(batch, is_new=known is None)

    def _entries_of(self, new: NewWrites, line: Line, conversation: str | None) -> list[NewEntry]:
        """Writes as entries at the end of a line, with the messages for the channel `conversation` ahead."""
        place, line.tail = line.tail, new_id_of(self._namespace, new.checkpoint_id)
        entry_id = line.tail
        encoder = Encoder(line, self._serde, self._is_readable)
        stored = [[name, encoder.encode(value, goes_on_line=name == conversation)] for name, value in new.writes]
        document = body(t=short_id(new.task_id), p=new.task_path or None, w=stored)
        return [new_document(entry_id, WRITES, document, place), *encoder.ahead]

    @property
    def _remembered(self) -> Namespace:
        return self._threads.namespace(self._thread_id, self._namespace)

    def _known(self, checkpoint_id: str) -> Operation[Known | None]:
        """A checkpoint, from memory or from the server."""
        known = self._remembered.known.get(checkpoint_id)
        if known is not None:
            return known
        found = yield from self._threads.read(self._thread_id, self._namespace, checkpoint_id, self._serde)
        return found.known if found is not None else None

    def _append(self, batch: list[NewEntry], is_new: bool) -> Operation[None]:
        sent: dict[str, Any] = {"create": True, "entries": batch}
        if is_new:
            sent["meta"] = {"metadata": {PREFIX: self._threads.prefix, THREAD: self._thread_id}}
        place = path("sessions", self._threads.session_id(self._thread_id), "entries", "batch")
        yield Call("POST", place, None, sent, new_key())

    def _message_channel(self, values: dict[str, Any], parent: Known | None) -> str | None:
        """The channel whose messages are the conversation: the one of before, `messages`, or the first that has some."""
        if not self._is_readable:
            return None
        for name in (_conversation(parent), *values):
            value: Any = values.get(name)
            if type(value) is list and value and all(is_readable(item) for item in cast("list[Any]", value)):
                return name
        return None


def _conversation(known: Known | None) -> str:
    """The channel whose messages were the conversation, `messages` when there was none."""
    channels: dict[str, Any] = known.document["c"] if known is not None else {}
    return next((name for name, stored in channels.items() if "n" in stored), "messages")


def _unchanged(channel: str, checkpoint: Checkpoint, parent: Known | None) -> dict[str, Any] | None:
    """How a checkpoint stores a value that its parent has in the same version; `None` when it has not."""
    if parent is None or parent.document["cv"].get(channel) != checkpoint["channel_versions"].get(channel):
        return None
    stored = parent.document["c"].get(channel)
    return stored and refer_to(stored, parent.entry_id)

"""What is read and written of one thread, as operations that either client does."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple

from .._errors import NotFound
from .._operations import Call, Operation
from .._requests import path
from .._types import Entry
from ._documents import (
    CHECKPOINT,
    WRITES,
    Decoder,
    document_of,
    fold_writes,
    message_count,
    messages_in,
    parent_of,
    type_of,
)
from ._ids import checkpoint_of, prefix_of
from ._line import Item, Line, StoredMessage, items_of
from ._messages import Serde, copied, from_entry
from ._shorthand import long_members, long_metadata, long_seen

# What a session says of itself in its metadata, so that threads can be listed.
PREFIX = "langgraph"
THREAD = "langgraph_thread"
# How many entries are asked for at once, by page and by id.
_PAGE = 500
_IDS_AT_ONCE = 100
# How many of the newest checkpoints are looked at for the one with the highest id.
_NEWEST = 4
# How many messages are read first of a line whose beginning is known.
_FIRST_PAGE = 16
# How many namespaces, and checkpoints of each, a saver remembers.
_NAMESPACES_MAX = 256
_CHECKPOINTS_MAX = 8
# For how many checkpoints that are not stored yet writes are kept.
_EARLY_MAX = 1024


@dataclass(frozen=True)
class NewWrites:
    """What a task wrote, for the checkpoint at which it ran."""

    checkpoint_id: str
    task_id: str
    task_path: str
    writes: Sequence[tuple[str, Any]]


@dataclass
class Known:
    """A checkpoint that this process wrote or read."""

    entry_id: str
    document: dict[str, Any]
    line: Line


@dataclass
class Namespace:
    """What is remembered of a namespace of a thread."""

    known: OrderedDict[str, Known] = field(default_factory=OrderedDict[str, Known])
    # Whether this process stores the checkpoints of the namespace.
    is_own: bool = False

    def remember(self, checkpoint_id: str, known: Known) -> None:
        self.known[checkpoint_id] = known
        self.known.move_to_end(checkpoint_id)
        while len(self.known) > _CHECKPOINTS_MAX:
            self.known.popitem(last=False)

    def newest_below(self, checkpoint_id: str) -> Known | None:
        """The checkpoint that was stored last of those below this one."""
        below = {checkpoint_id}
        found: Known | None = None
        for known_id, known in self.known.items():
            if parent_of(known.document) in below:
                below.add(known_id)
                found = known
        return found

    @property
    def newest(self) -> Known | None:
        return next(reversed(self.known.values()), None)


class Threads:
    """The threads of a saver. What it remembers of them saves requests; all of it can be read again."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._remembered: OrderedDict[tuple[str, str], Namespace] = OrderedDict()
        self._guard = threading.Lock()
        self._early: OrderedDict[tuple[str, str, str], list[NewWrites]] = OrderedDict()

    def session_id(self, thread_id: str) -> str:
        """The session of a thread."""
        return self.prefix + thread_id

    def namespace(self, thread_id: str, namespace: str) -> Namespace:
        """What is remembered of a namespace."""
        with self._guard:
            found = self._remembered.setdefault((thread_id, namespace), Namespace())
            self._remembered.move_to_end((thread_id, namespace))
            while len(self._remembered) > _NAMESPACES_MAX:
                self._remembered.popitem(last=False)
            return found

    def keep_early(self, thread_id: str, namespace: str, new: NewWrites) -> None:
        """Keeps writes until their checkpoint is stored. Without it nobody can read them, so that nothing is lost with them."""
        with self._guard:
            self._early.setdefault((thread_id, namespace, new.checkpoint_id), []).append(new)
            while len(self._early) > _EARLY_MAX:
                self._early.popitem(last=False)

    def take_early(self, thread_id: str, namespace: str, checkpoint_id: str) -> list[NewWrites]:
        """The writes that came before their checkpoint, in the order in which the framework applies them."""
        with self._guard:
            found = self._early.pop((thread_id, namespace, checkpoint_id), [])
        return sorted(found, key=lambda writes: writes.task_path)

    def forget(self, thread_id: str) -> None:
        """Forgets a thread that was deleted or changed elsewhere."""
        with self._guard:
            for key in [key for key in self._remembered if key[0] == thread_id]:
                del self._remembered[key]

    def entries(self, thread_id: str, **wanted: Any) -> Operation[list[Entry]]:
        """All entries with these keys; none when there is no such thread."""
        found: list[Entry] = []
        cursor: str | None = None
        limit = wanted.pop("limit", None)
        while True:
            params = {**wanted, "limit": limit or _PAGE, "cursor": cursor}
            try:
                page = yield Call("GET", path("sessions", self.session_id(thread_id), "entries"), params)
            except NotFound:
                return []
            found.extend(page["entries"])
            cursor = page.get("next_cursor")
            if cursor is None or limit is not None:
                return found

    def latest_id(self, thread_id: str, namespace: str) -> Operation[str | None]:
        """The newest checkpoint of a namespace."""
        newest = yield from self.entries(
            thread_id, custom_type=CHECKPOINT, id_prefix=prefix_of(namespace), order="newest", limit=_NEWEST
        )
        return max((checkpoint_of(entry["entry_id"]) for entry in newest), default=None)

    def read(self, thread_id: str, namespace: str, checkpoint_id: str, serde: Serde) -> Operation[Found | None]:
        """One checkpoint with its writes."""
        entries = yield from self.entries(thread_id, id_prefix=prefix_of(namespace, checkpoint_id), order="oldest")
        documents = [entry for entry in entries if type_of(entry) == CHECKPOINT]
        writes = [document_of(entry) for entry in entries if type_of(entry) == WRITES]
        if not documents:
            return None
        known = yield from self._known(thread_id, namespace, documents[-1], serde)
        return Found(known, writes)

    def _known(self, thread_id: str, namespace: str, entry: Entry, serde: Serde) -> Operation[Known]:
        checkpoint_id = checkpoint_of(entry["entry_id"])
        remembered = self.namespace(thread_id, namespace)
        known = remembered.known.get(checkpoint_id)
        if known is None or known.entry_id != entry["entry_id"]:
            line = yield from self._line(thread_id, entry, remembered, serde)
            known = Known(entry["entry_id"], document_of(entry), line)
            remembered.remember(checkpoint_id, known)
        return known

    def _line(self, thread_id: str, entry: Entry, remembered: Namespace, serde: Serde) -> Operation[Line]:
        """Reads the messages on the line to a checkpoint, newest first, until one is known."""
        document = document_of(entry)
        held = message_count(document)
        # Other programs put messages on the line ahead of the checkpoint, and say how many.
        wanted = held + document.get("a", 0)
        beginning = remembered.newest.line if remembered.newest is not None else Line()
        places = {item.entry_id: index for index, item in enumerate(beginning.items)}
        read: list[StoredMessage] = []
        before: list[Item] = []
        limit, cursor = (_FIRST_PAGE if places else _PAGE), None
        while wanted > len(read) and not before:
            params = {"from_entry_id": entry["entry_id"], "limit": limit, "cursor": cursor}
            page = yield Call("GET", path("sessions", self.session_id(thread_id), "messages", "tail"), params)
            for item in page["messages"]:
                place = places.get(item["entry_id"])
                if place is not None and place + 1 + len(read) == wanted:
                    before = beginning.items[: place + 1]
                    break
                read.append(_stored_message(item, serde))
                if len(read) == wanted:
                    break
            limit, cursor = _PAGE, page.get("next_cursor")
            if cursor is None:
                break
        items = items_of(before, read[::-1], document.get("ids", {}))
        return Line(entry["entry_id"], items, held)

    def tuple_of(
        self, thread_id: str, namespace: str, checkpoint_id: str, found: Found, serde: Serde
    ) -> Operation[CheckpointTuple]:
        """A checkpoint as the framework wants it."""
        document, line = found.known.document, found.known.line
        channels = yield from self._channels(thread_id, document)
        decoder = yield from self._decoder(thread_id, line, [*channels.values(), *found.values()], serde)
        values: dict[str, Any] = {}
        for channel, stored in channels.items():
            if "n" in stored:
                values[channel] = [copied(item.message) for item in line.items[: line.held]]
            else:
                values[channel] = decoder.decode(stored)
        members: dict[str, Any] = decoder.decode(long_members(document["x"]))
        checkpoint = {
            **{"updated_channels": None, **members},
            "id": checkpoint_id,
            "channel_values": values,
            "channel_versions": deepcopy(document["cv"]),
            "versions_seen": deepcopy(long_seen(document["vs"])),
        }
        parent = parent_of(document)
        return CheckpointTuple(
            config=config_of(thread_id, namespace, checkpoint_id),
            checkpoint=cast("Checkpoint", checkpoint),
            metadata=decoder.decode(long_metadata(document["md"])),
            parent_config=config_of(thread_id, namespace, parent) if parent else None,
            pending_writes=fold_writes(found.writes, decoder),
        )

    def _channels(self, thread_id: str, document: dict[str, Any]) -> Operation[dict[str, dict[str, Any]]]:
        """The stored values of a checkpoint, with those that it has from earlier ones."""
        channels: dict[str, dict[str, Any]] = dict(document["c"])
        elsewhere = {stored["@"] for stored in channels.values() if "@" in stored}
        documents: dict[str, dict[str, Any]] = {}
        for entry in (yield from self._by_id(thread_id, elsewhere)):
            documents[entry["entry_id"]] = document_of(entry)
        for channel, stored in channels.items():
            if "@" in stored:
                channels[channel] = documents[stored["@"]]["c"][channel]
        return channels

    def _decoder(self, thread_id: str, line: Line, stored: list[dict[str, Any]], serde: Serde) -> Operation[Decoder]:
        """A decoder that has every message to which the values refer."""
        wanted = {entry_id for value in stored for entry_id in messages_in(value)}
        messages: dict[str, BaseMessage] = {}
        if wanted:
            for item in line.items:
                if item.entry_id in wanted:
                    messages[item.entry_id] = item.message.model_copy(update={"id": item.stored_id})
            for entry in (yield from self._by_id(thread_id, wanted - set(messages))):
                messages[entry["entry_id"]] = from_entry(entry.get("message", {}), serde)
        return Decoder(serde, messages)

    def _by_id(self, thread_id: str, ids: set[str]) -> Operation[list[Entry]]:
        found: list[Entry] = []
        ordered = sorted(ids)
        for start in range(0, len(ordered), _IDS_AT_ONCE):
            found += yield from self.entries(thread_id, ids=ordered[start : start + _IDS_AT_ONCE])
        return found


@dataclass(frozen=True)
class Found:
    """A checkpoint that was read, and the documents of its writes."""

    known: Known
    writes: list[dict[str, Any]]

    def values(self) -> Iterator[dict[str, Any]]:
        """The stored values of the writes."""
        for document in self.writes:
            for _, stored in document["w"]:
                yield stored


def configurable(config: RunnableConfig) -> dict[str, Any]:
    """What a configuration names: the thread, the namespace and the checkpoint."""
    return config.get("configurable", {})


def config_of(thread_id: str, namespace: str, checkpoint_id: str) -> Any:
    """The configuration that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def _stored_message(item: dict[str, Any], serde: Serde) -> StoredMessage:
    message = item["message"]
    return StoredMessage(item["entry_id"], item.get("parent_id"), from_entry(message, serde), message["langchain"].get("ids", {}))

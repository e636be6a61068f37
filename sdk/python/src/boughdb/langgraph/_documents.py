"""How checkpoints and writes are written as custom entries."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key

from .._types import Entry, NewEntry
from ._ids import long_id
from ._line import Line
from ._messages import Serde, copied, is_readable
from ._shorthand import long_checkpoint, long_writes, short_checkpoint, short_writes
from ._values import from_opaque, is_plain_json, opaque

CHECKPOINT = "langgraph.checkpoint"
WRITES = "langgraph.writes"

# A value that is at most so long is repeated by each checkpoint; a longer one is referred to.
_REPEATED_MAX = 64
# Members of a checkpoint that have a place of their own in its document.
_OWN = ("id", "channel_values", "channel_versions", "versions_seen")


def new_document(entry_id: str, custom_type: str, document: dict[str, Any], parent_id: str | None) -> NewEntry:
    """The entry of a document."""
    short = {CHECKPOINT: short_checkpoint, WRITES: short_writes}.get(custom_type)
    data = short(document) if short is not None else document
    return {"entry_id": entry_id, "custom": {"custom_type": custom_type, "data": data}, "parent_id": parent_id}


def type_of(entry: Entry) -> str | None:
    """What kind of document an entry is; `None` for a message."""
    return entry["custom"]["custom_type"] if "custom" in entry else None


def document_of(entry: Entry) -> dict[str, Any]:
    """The document that `new_document` was given."""
    if "custom" not in entry:
        return {}
    long = {CHECKPOINT: long_checkpoint, WRITES: long_writes}.get(entry["custom"]["custom_type"])
    return long(entry["custom"]["data"]) if long is not None else entry["custom"]["data"]


def parent_of(document: dict[str, Any]) -> str | None:
    """The checkpoint below which a checkpoint was stored."""
    return long_id(document["p"]) if "p" in document else None


def message_count(document: dict[str, Any]) -> int:
    """How many messages a checkpoint holds."""
    return next((stored["n"] for stored in document["c"].values() if "n" in stored), 0)


class Encoder:
    """Turns values into JSON. Messages that are on the line, or may go there, are referred to."""

    def __init__(self, line: Line, serde: Serde, is_readable: bool) -> None:
        self._line = line
        self._serde = serde
        self._is_readable = is_readable
        self.ahead: list[NewEntry] = []

    def encode(self, value: Any, goes_on_line: bool = False) -> dict[str, Any]:
        """A value. `goes_on_line` says that its messages are expected in the messages channel."""
        if not self._is_readable:
            return opaque(value, self._serde)
        if is_plain_json(value):
            return {"j": value}
        if is_readable(value):
            return self._message(value, goes_on_line) or opaque(value, self._serde)
        kind = cast("type[Any]", type(value))
        if kind is list and _has_messages(value):
            return {"l": [self.encode(item, goes_on_line) for item in value]}
        if kind is dict and _is_of_messages(value):
            return {"d": {name: self.encode(item, goes_on_line) for name, item in value.items()}}
        return opaque(value, self._serde)

    def _message(self, message: BaseMessage, goes_on_line: bool) -> dict[str, Any] | None:
        item = self._line.find(message)
        if item is None:
            if not goes_on_line:
                return None
            self.ahead.append(self._line.add(message, self._serde))
            item = self._line.items[-1]
        reference: dict[str, Any] = {"m": item.entry_id}
        return reference if message.id == item.stored_id else {**reference, "i": message.id}


def _has_messages(items: list[Any]) -> bool:
    return any(is_readable(item) for item in items)


def _is_of_messages(members: dict[Any, Any]) -> bool:
    """Whether a value is like the state of a graph: texts as keys, and a message or a list with messages among its values."""
    return all(type(name) is str for name in members) and any(
        is_readable(item) or (isinstance(item, list) and _has_messages(cast("list[Any]", item))) for item in members.values()
    )


class Decoder:
    """Turns JSON into values again. `messages` has the stored message of each entry that is referred to."""

    def __init__(self, serde: Serde, messages: dict[str, BaseMessage]) -> None:
        self._serde = serde
        self._messages = messages

    def decode(self, stored: dict[str, Any]) -> Any:
        if "j" in stored:
            # The framework changes what it gets.
            return deepcopy(stored["j"])
        if "b" in stored:
            return from_opaque(stored, self._serde)
        if "l" in stored:
            return [self.decode(item) for item in stored["l"]]
        if "d" in stored:
            return {name: self.decode(item) for name, item in stored["d"].items()}
        message = copied(self._messages[stored["m"]])
        if "i" in stored:
            message.id = stored["i"]
        return message


def messages_in(stored: dict[str, Any]) -> Iterator[str]:
    """The entries of the messages that a stored value refers to."""
    if "m" in stored:
        yield stored["m"]
    for item in stored.get("l", ()):
        yield from messages_in(item)
    for item in stored.get("d", {}).values():
        yield from messages_in(item)


def refer_to(stored: dict[str, Any], entry_id: str) -> dict[str, Any] | None:
    """How a later checkpoint stores a value of this one: by reference, or again where it is short."""
    if "n" in stored:
        return None
    return stored if "@" in stored or len(str(stored)) <= _REPEATED_MAX else {"@": entry_id}


def checkpoint_members(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says beside its values and versions, such as its time."""
    return {name: value for name, value in checkpoint.items() if name not in _OWN and value not in (None, [])}


def fold_writes(documents: list[dict[str, Any]], decoder: Decoder) -> list[PendingWrite]:
    """The pending writes of a checkpoint, from the documents of its tasks in the order in which they were stored.

    A task that writes again changes nothing, but for special writes such as an error, which are replaced.
    """
    found: dict[tuple[str, int], tuple[str, str, dict[str, Any]]] = {}
    for document in documents:
        special = all(channel in WRITES_IDX_MAP for channel, _ in document["w"])
        for index, (channel, stored) in enumerate(document["w"]):
            key = (long_id(document["t"]), WRITES_IDX_MAP.get(channel, index))
            if special or key not in found:
                found[key] = (document.get("p", ""), channel, stored)
    ordered = sorted(found.items(), key=lambda write: writes_sort_key(write[1][0], *write[0]))
    return [(task, channel, decoder.decode(stored)) for (task, _), (_, channel, stored) in ordered]

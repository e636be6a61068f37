"""The line of entries that leads to a checkpoint.

A session is a tree. The entries of one run follow each other on a line: messages, checkpoints, and the writes of tasks. The
messages channel of a checkpoint is not stored with it: it is the messages on the line up to it. So a message is stored once,
however many checkpoints hold it.

A message is often seen before it is in the channel, as input or as a write of a task. It is put on the line then, ahead of
the checkpoint that will hold it, and the input or write refers to it. Should the channel turn out otherwise, the next
checkpoint branches off before the first message that differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage

from .._types import NewEntry
from ._ids import new_entry_id
from ._messages import Serde, copied, to_entry


@dataclass(frozen=True)
class Item:
    """A message on a line.

    `message` is the message as the channel holds it. Its id may have been given after it was stored; then a later message,
    `carried_by`, says it, or the checkpoint where there is none yet.
    """

    entry_id: str
    parent_id: str | None
    message: BaseMessage
    stored_id: str | None
    carried_by: str | None = None

    @property
    def needs_id(self) -> bool:
        """Whether something behind the message has to say its id."""
        return self.message.id != self.stored_id


@dataclass
class Line:
    """What is known of the entries that lead to a checkpoint, and of those behind it that wait for the next one."""

    tail: str | None = None
    items: list[Item] = field(default_factory=list["Item"])
    # How many of the messages the checkpoint holds; the others are ahead of it.
    held: int = 0

    def copy(self) -> Line:
        """Another line that begins the same."""
        return Line(self.tail, list(self.items), self.held)

    def hold(self, messages: list[BaseMessage], serde: Serde) -> list[NewEntry]:
        """Makes the line hold exactly these messages; returns the entries to append for it."""
        kept = self._match(messages)
        if kept < len(self.items):
            self.tail = self.items[kept].parent_id
            del self.items[kept:]
        batch = [self.add(message, serde) for message in messages[kept:]]
        self.held = len(messages)
        return batch

    def add(self, message: BaseMessage, serde: Serde) -> NewEntry:
        """Puts a message at the end; returns the entry to append for it."""
        entry = to_entry(message, serde)
        entry_id = new_entry_id()
        ids = self.ids_to_say()
        for index, item in enumerate(self.items):
            if item.entry_id in ids:
                self.items[index] = replace(item, carried_by=entry_id)
        if ids:
            entry["langchain"]["ids"] = ids
        appended: NewEntry = {"entry_id": entry_id, "message": entry, "parent_id": self.tail}
        self.items.append(Item(entry_id, self.tail, copied(message), message.id))
        self.tail = entry_id
        return appended

    def ids_to_say(self) -> dict[str, str | None]:
        """The ids that no message on the line says: the entry that is appended next has to."""
        on_line = {item.entry_id for item in self.items}
        unsaid = [item for item in self.items if item.needs_id and item.carried_by not in on_line]
        return {item.entry_id: item.message.id for item in unsaid}

    def find(self, message: BaseMessage) -> Item | None:
        """The message among the newest ones of the line, whatever its id."""
        for item in reversed(self.items[-_LOOK_BACK:]):
            if is_same_said(item.message, message):
                return item
        return None

    def _match(self, messages: list[BaseMessage]) -> int:
        """How many messages of the line can stay, from its beginning."""
        for index, message in enumerate(messages):
            if index >= len(self.items):
                return index
            item = self.items[index]
            if item.message == message:
                continue
            if index < self.held or not is_same_said(item.message, message):
                return index
            # It was ahead of its checkpoint, which gave it an id.
            self.items[index] = replace(item, message=copied(message))
        return len(messages)


# How far back from the end of a line a message is looked for.
_LOOK_BACK = 32


def is_same_said(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether two messages are equal but for their ids."""
    if type(one) is not type(other) or one.content != other.content:
        return False
    return one == other or one.model_copy(update={"id": None}) == other.model_copy(update={"id": None})


@dataclass(frozen=True)
class StoredMessage:
    """A message of a line as it was read: `ids` are those that it says of earlier ones."""

    entry_id: str
    parent_id: str | None
    message: BaseMessage
    ids: dict[str, str | None]


def items_of(before: list[Item], read: list[StoredMessage], ids: dict[str, str | None]) -> list[Item]:
    """The items of a line: those that are known from its beginning, and what was read behind them, oldest first.

    `ids` are what the checkpoint at the end of the line says.
    """
    said: dict[str, tuple[str | None, str | None]] = {entry_id: (given, None) for entry_id, given in ids.items()}
    for stored in read:
        said.update((other, (given, stored.entry_id)) for other, given in stored.ids.items())
    items = before + [Item(stored.entry_id, stored.parent_id, stored.message, stored.message.id) for stored in read]
    for index, item in enumerate(items):
        if item.entry_id in said:
            given, carrier = said[item.entry_id]
            message = item.message.model_copy(update={"id": given})
            items[index] = replace(item, message=message, carried_by=carrier)
    return items

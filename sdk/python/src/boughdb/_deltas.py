"""Pieces of a reply that wait to be sent."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ._types import DeltaKind


@dataclass(frozen=True)
class Delta:
    """Text that is added to one block of a message."""

    block: int
    kind: DeltaKind
    text: str
    # The id and the function of a call, when this begins one.
    call: tuple[str, str] | None = None


class DeltaQueue:
    """Holds deltas in order; those of one block that follow each other are joined."""

    def __init__(self) -> None:
        self._waiting: list[Delta] = []
        self._texts: list[str] = []
        self.characters = 0

    def add(self, delta: Delta) -> None:
        """Adds a delta at the end."""
        self.characters += len(delta.text)
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.block == delta.block:
            self._texts.append(delta.text)
            return
        self._join()
        self._waiting.append(replace(delta, text=""))
        self._texts = [delta.text]

    def take(self) -> Delta:
        """Takes the first delta, with everything that was joined to it."""
        self._join()
        delta = self._waiting.pop(0)
        self.characters -= len(delta.text)
        return delta

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def _join(self) -> None:
        if self._texts and self._waiting:
            last = self._waiting[-1]
            self._waiting[-1] = replace(last, text=last.text + "".join(self._texts))
        self._texts = []


class BlockCounter:
    """Says to which block of a message a piece of text belongs: text of another kind begins the next one."""

    def __init__(self, blocks: int) -> None:
        self._next = blocks
        self._kind: DeltaKind | None = None

    def block(self, kind: DeltaKind) -> int:
        """Returns the block for text of this kind."""
        if kind != self._kind:
            self._kind = kind
            self._next += 1
        return self._next - 1

    def close(self) -> None:
        """Ends the block: the next text begins another one, also when it is of the same kind."""
        self._kind = None

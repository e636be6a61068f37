"""A reader of server-sent events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSentEvent:
    """One event as it was sent."""

    name: str
    data: str
    id: str


class SseDecoder:
    """Turns the bytes of a stream into events.

    Lines end at `\\n`, `\\r` or `\\r\\n` and nowhere else: a text may hold other characters that Python takes for the end of a
    line.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self._rest: list[bytes] = []
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Takes more bytes and returns the events that they complete."""
        self._rest.append(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return []
        text = b"".join(self._rest).replace(b"\r\n", b"\n")
        # A return at the end may be the first half of a line's end.
        held = b"\r" if text.endswith(b"\r") else b""
        *whole, rest = text.removesuffix(b"\r").replace(b"\r", b"\n").split(b"\n")
        self._rest = [rest + held]
        events: list[ServerSentEvent] = []
        for line in whole:
            event = self._take(line.decode(errors="replace"))
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _complete(self) -> ServerSentEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        if not data:
            return None
        return ServerSentEvent(name or "message", "\n".join(data), self.last_id)

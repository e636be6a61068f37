# Made from ../_async/reply.py by tools/make_sync.py; change it there.
"""A message that is written while it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from .._deltas import BlockCounter, Delta
from .._errors import BoughError, Conflict
from .._requests import body, path
from .._runtime_sync import shielded
from .._types import DeltaKind, StopReason, Usage
from .http import Http
from .sender import Sender

# How long the end of a reply may take after its writer was cancelled, in seconds.
_FINISH_SECONDS = 10.0


class Reply:
    """A streaming reply: readers see its text as it is written, and it is finished when the block ends.

    Made by `Session.stream`. When the body raises, the reply is finished all the same: as an `error` with the text of
    the exception, or as `aborted` when the body was cancelled or interrupted. Usage that was set by then counts.

    `entry_id` is known inside the block, and `revision` after it.
    """

    def __init__(self, http: Http, session_id: str, begin: Mapping[str, Any], interval: float) -> None:
        self._http = http
        self._session_id = session_id
        self._begin = begin
        self._blocks = BlockCounter(_block_count(begin["message"]))
        self._sender = Sender(self._send, interval)
        self._end: dict[str, Any] = {}
        self.entry_id: str = begin["entry_id"]
        self.revision = 0

    def text(self, text: str) -> None:
        """Adds to what the model says."""
        self._add("text", text)

    def thinking(self, text: str) -> None:
        """Adds to what the model thinks."""
        self._add("thinking", text)

    def tool_call(self, call_id: str, function: str, arguments: str = "") -> None:
        """Begins a call of a function; `arguments` is the beginning of the JSON that `tool_arguments` adds to."""
        self._blocks.close()
        delta = Delta(self._blocks.block("tool_arguments"), "tool_arguments", arguments, (call_id, function))
        self._sender.add(delta)

    def tool_arguments(self, text: str) -> None:
        """Adds to the arguments of the call that was begun last."""
        self._add("tool_arguments", text)

    def finish(
        self,
        *,
        stop_reason: StopReason | None = None,
        usage: Usage | Mapping[str, Any] | None = None,
        model: str | None = None,
        error: str | None = None,
    ) -> None:
        """Says how the reply ends. It is sent when the block ends; calling it again adds to it."""
        self._end.update(body(stop_reason=stop_reason, usage=usage, model=model, error=error))

    def __enter__(self) -> Reply:
        begun = self._http.call("POST", path("sessions", self._session_id, "entries"), body=self._begin)
        self.revision = begun["revision"]
        self._sender.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._end.update(_end_of(error))
        with shielded(_FINISH_SECONDS):
            try:
                self._close()
            except BoughError:
                # What went wrong in the body is what the caller has to know.
                if error is None:
                    raise

    def _close(self) -> None:
        try:
            self._sender.drain()
        except BoughError as failure:
            self._end.update(stop_reason="error", error=str(failure))
            self._finish()
            raise
        self._finish()

    def _finish(self) -> None:
        place = path("sessions", self._session_id, "entries", self.entry_id, "finish")
        end = {"stop_reason": "end", **self._end}
        try:
            finished = self._http.call("POST", place, body=end)
        except Conflict as conflict:
            if conflict.attempts == 1 or conflict.data.get("revision") != self.revision + 1:
                raise
            # An earlier attempt arrived and its answer was lost.
            finished = conflict.data
        self.revision = finished["revision"]

    def _add(self, kind: DeltaKind, text: str) -> None:
        if text:
            self._sender.add(Delta(self._blocks.block(kind), kind, text))

    def _send(self, delta: Delta) -> None:
        """Sends a delta. Only this reply writes the message, so its revision tells a delta that arrived from one that did not."""
        place = path("sessions", self._session_id, "entries", self.entry_id, "delta")
        call_id, function = delta.call or (None, None)
        sent = body(
            block=delta.block,
            kind=delta.kind,
            text=delta.text,
            function_call_id=call_id,
            function_id=function,
            expected_revision=self.revision,
        )
        try:
            answer = self._http.call("POST", place, body=sent)
        except Conflict as conflict:
            if conflict.attempts == 1 or conflict.data.get("revision") != self.revision + 1:
                raise
            # An earlier attempt arrived and its answer was lost.
            answer = conflict.data
        self.revision = answer["revision"]


def _block_count(message: Mapping[str, Any]) -> int:
    """How many blocks a message has already; one text in place of a list is a block."""
    content = message["content"]
    return 1 if isinstance(content, str) else len(content)


def _end_of(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Exception):
        return {"stop_reason": "error", "error": str(error) or type(error).__name__}
    return {"stop_reason": "aborted"}

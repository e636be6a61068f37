# Made from ../_async/sender.py by tools/make_sync.py; change it there.
"""Sends the pieces of a reply beside the one who writes it."""

from __future__ import annotations

import time

from .._deltas import Delta, DeltaQueue
from .._runtime_sync import Background, Condition, Send, wait_at_most

# A writer that is further ahead than this many characters waits for the server.
_CHARACTERS_WAITING_MAX = 256 * 1024


class Sender:
    """Sends deltas in order, one request at a time, and joins what is written between two requests.

    The first delta is sent at once and each later one at least `interval` seconds after the one before, so that a reply of
    thousands of tokens is a few requests a second, and nothing waits for long when the writer pauses.
    """

    def __init__(self, send: Send, interval: float) -> None:
        self._send = send
        self._interval = interval
        self._queue = DeltaQueue()
        self._changed = Condition()
        self._is_closing = False
        self._has_ended = False
        self._failure: Exception | None = None
        self._background = Background(self._run)

    def start(self) -> None:
        """Begins to send."""
        self._background.start()

    def add(self, delta: Delta) -> None:
        """Hands over a delta. Raises what went wrong with an earlier one."""
        with self._changed:
            while self._queue.characters > _CHARACTERS_WAITING_MAX and self._failure is None:
                self._changed.wait()
            self._raise_failure()
            self._queue.add(delta)
            self._changed.notify_all()

    def drain(self) -> None:
        """Waits until everything is sent, and stops. Raises what went wrong."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            while not self._has_ended:
                self._changed.wait()
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while True:
                delta = self._next()
                if delta is None:
                    break
                self._send(delta)
                self._pause()
        except Exception as failure:
            self._failure = failure
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _next(self) -> Delta | None:
        with self._changed:
            while not self._queue and not self._is_closing:
                self._changed.wait()
            delta = self._queue.take() if self._queue else None
            self._changed.notify_all()
            return delta

    def _pause(self) -> None:
        until = time.monotonic() + self._interval
        with self._changed:
            while not self._is_closing and time.monotonic() < until:
                wait_at_most(self._changed, until - time.monotonic())

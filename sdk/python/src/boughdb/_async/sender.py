"""Sends the pieces of a reply beside the one who writes it."""

from __future__ import annotations

import time

from .._deltas import Delta, DeltaQueue
from .._runtime_async import AsyncBackground, AsyncCondition, Send, wait_at_most

# A writer that is further ahead than this many characters waits for the server.
_CHARACTERS_WAITING_MAX = 256 * 1024


class AsyncSender:
    """Sends deltas in order, one request at a time, and joins what is written between two requests.

    The first delta is sent at once and each later one at least `interval` seconds after the one before, so that a reply of
    thousands of tokens is a few requests a second, and nothing waits for long when the writer pauses.
    """

    def __init__(self, send: Send, interval: float) -> None:
        self._send = send
        self._interval = interval
        self._queue = DeltaQueue()
        self._changed = AsyncCondition()
        self._is_closing = False
        self._has_ended = False
        self._failure: Exception | None = None
        self._background = AsyncBackground(self._run)

    async def start(self) -> None:
        """Begins to send."""
        await self._background.start()

    async def add(self, delta: Delta) -> None:
        """Hands over a delta. Raises what went wrong with an earlier one."""
        async with self._changed:
            while self._queue.characters > _CHARACTERS_WAITING_MAX and self._failure is None:
                await self._changed.wait()
            self._raise_failure()
            self._queue.add(delta)
            self._changed.notify_all()

    async def drain(self) -> None:
        """Waits until everything is sent, and stops. Raises what went wrong."""
        async with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            while not self._has_ended:
                await self._changed.wait()
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        try:
            while True:
                delta = await self._next()
                if delta is None:
                    break
                await self._send(delta)
                await self._pause()
        except Exception as failure:
            self._failure = failure
        async with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    async def _next(self) -> Delta | None:
        async with self._changed:
            while not self._queue and not self._is_closing:
                await self._changed.wait()
            delta = self._queue.take() if self._queue else None
            self._changed.notify_all()
            return delta

    async def _pause(self) -> None:
        until = time.monotonic() + self._interval
        async with self._changed:
            while not self._is_closing and time.monotonic() < until:
                await wait_at_most(self._changed, until - time.monotonic())

"""What the asynchronous client needs of asyncio or trio. Its twin is `_runtime_sync`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

import anyio

AsyncCondition = anyio.Condition


async def sleep(seconds: float) -> None:
    """Waits."""
    await anyio.sleep(seconds)


async def wait_at_most(condition: AsyncCondition, seconds: float) -> None:
    """Waits for a notification of a held condition, or until the time is over."""
    with anyio.move_on_after(seconds):
        await condition.wait()


def shielded(seconds: float) -> AbstractContextManager[object]:
    """What is done inside is not cancelled from outside, and ends after so many seconds."""
    return anyio.move_on_after(seconds, shield=True)


class AsyncBackground:
    """Runs a function beside its caller. The function must not raise.

    Not a task group: a reply may be written inside an asynchronous generator, which may be closed by another task.
    """

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            import trio

            trio.lowlevel.spawn_system_task(self._run)
        else:
            # Tasks without a reference may be collected while they run.
            self._task = loop.create_task(self._run())


Send = Callable[..., Awaitable[Any]]

"""What the client needs of threads. Its twin is `_runtime_async`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Condition = threading.Condition


def sleep(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


def wait_at_most(condition: Condition, seconds: float) -> None:
    """Waits for a notification of a held condition, or until the time is over."""
    condition.wait(seconds)


def shielded(seconds: float) -> AbstractContextManager[object]:
    """Threads are not cancelled from outside, and every request has its own timeout."""
    return nullcontext()


class Background:
    """Runs a function beside its caller. The function must not raise."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name="boughdb-reply", daemon=True)

    def start(self) -> None:
        """Starts it."""
        self._thread.start()


Send = Callable[..., Any]

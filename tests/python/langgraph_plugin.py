"""A plugin of pytest: LangGraph's own tests run with our saver in place of its savers in SQLite."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import tests.conftest_checkpointer as savers

from bough_server import Server
from boughdb.langgraph import BoughSaver

SERVER: list[Server] = []


def new_saver() -> BoughSaver:
    """A saver that shares nothing with the others."""
    return BoughSaver(SERVER[0].url, prefix=f"{secrets.token_hex(4)}/")


@contextmanager
def in_place_of_sqlite() -> Iterator[BoughSaver]:
    yield new_saver()


@asynccontextmanager
async def in_place_of_async_sqlite() -> AsyncIterator[BoughSaver]:
    yield new_saver()


savers._checkpointer_sqlite = in_place_of_sqlite
savers._checkpointer_sqlite_aio = in_place_of_async_sqlite


def pytest_sessionstart(session: pytest.Session) -> None:
    # Beside the folder of the tests, which pytest clears.
    folder = Path(session.config.getoption("--basetemp")).with_name("servers")
    folder.mkdir(parents=True, exist_ok=True)
    SERVER.append(Server(folder / secrets.token_hex(4)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for server in SERVER:
        server.stop()

"""A plugin of pytest: LangGraph's own tests of stores run with our store in place of its store in memory."""

from __future__ import annotations

import secrets
from pathlib import Path

import langgraph.store.memory as memory
import pytest

from bough_server import Server
from boughdb.langgraph import BoughStore

SERVER: list[Server] = []


class StoreInPlaceOfMemory(BoughStore):
    """A store that shares nothing with the others."""

    def __init__(self) -> None:
        super().__init__(SERVER[0].url, scope=secrets.token_hex(4))


memory.InMemoryStore = StoreInPlaceOfMemory  # type: ignore[misc, assignment]


def pytest_sessionstart(session: pytest.Session) -> None:
    # Beside the folder of the tests, which pytest clears.
    folder = Path(session.config.getoption("--basetemp")).with_name("servers")
    folder.mkdir(parents=True, exist_ok=True)
    SERVER.append(Server(folder / secrets.token_hex(4)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for server in SERVER:
        server.stop()

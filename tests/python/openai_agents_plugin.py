"""A plugin of pytest: the session tests of the OpenAI Agents SDK run with our session in place of its own in SQLite.

Tests that look into SQLite are left out: those whose text names its connections, tables, locks or private members.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import secrets
from pathlib import Path
from typing import Any

import agents
import agents.memory
import pytest

from bough_server import Server
from boughdb.openai_agents import BoughSession

INSIDES = re.compile(
    r"sqlite3\.|\b(session|underlying|inner|base|backend|storage)\w*\._[a-z]|SQLiteSession\._|\.close\(\)|_connection|_rows\b"
    r"|_compaction_snapshot|class \w+\(SQLiteSession\)|_drop_sqlite"
)
SERVER: list[Server] = []


class StandIn(BoughSession):
    """A session with the arguments of the one in SQLite: a file is a prefix."""

    def __init__(
        self, session_id: str, db_path: str | Path = ":memory:", *, session_settings: Any = None, **_tables: Any
    ) -> None:
        in_memory = str(db_path) == ":memory:"
        place = secrets.token_hex(6) if in_memory else hashlib.sha256(str(db_path).encode()).hexdigest()[:12]
        super().__init__(session_id, SERVER[0].url, session_settings=session_settings)
        self.stored_as = f"{place}/{session_id}"

    @property
    def _session(self) -> Any:
        return self._clients.asynchronous.session(self.stored_as)

    def close(self) -> None:
        """Nothing is open."""


def pytest_configure(config: pytest.Config) -> None:
    agents.SQLiteSession = StandIn  # type: ignore[misc]
    agents.memory.SQLiteSession = StandIn  # type: ignore[misc]


def pytest_sessionstart(session: pytest.Session) -> None:
    # Beside the folder of the tests, which pytest clears.
    folder = Path(session.config.getoption("--basetemp")).with_name("servers")
    folder.mkdir(parents=True, exist_ok=True)
    SERVER.append(Server(folder / secrets.token_hex(4)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for server in SERVER:
        server.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if INSIDES.search(inspect.getsource(getattr(item, "function", StandIn)))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]

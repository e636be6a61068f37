"""Taking over threads of LangGraph's savers in SQLite and in PostgreSQL, by the function and by the command."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from test_langgraph import ask, compiled, conversation, new_saver, thread

from boughdb import Bough
from boughdb.langgraph import BoughSaver, import_threads

_START_SECONDS = 60


class Postgres:
    """A PostgreSQL server on loopback with a folder of its own. It refuses to run as root, so root runs it as another user."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bough-postgres-"))
        self._as: list[str] = []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        programs = Path(os.environ["POSTGRES_BIN"])
        data = str(self.folder / "data")
        new = [str(programs / "initdb"), "--pgdata", data, "--username", "bough", "--auth", "trust", "--no-sync"]
        subprocess.run([*self._as, *new], check=True, capture_output=True, cwd="/")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        serve = [str(programs / "postgres"), "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", str(self.folder)]
        self.process = subprocess.Popen(
            [*self._as, *serve, "-c", "fsync=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        )
        self.url = f"postgresql://bough@127.0.0.1:{port}/postgres"
        late = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < late, "PostgreSQL did not start"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


class Source:
    """Where another saver keeps its threads."""

    def __init__(self, place: str) -> None:
        self.place = place

    def open(self) -> AbstractContextManager[Any]:
        if self.place.startswith("postgresql://"):
            return PostgresSaver.from_conn_string(self.place)
        return SqliteSaver.from_conn_string(self.place)


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """A saver with two threads, one of them with a branch."""
    if request.param == "sqlite":
        made = Source(str(tmp_path / "checkpoints.sqlite"))
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("drop schema public cascade")
            connection.execute("create schema public")
        made = Source(server.url)
    with made.open() as saver:
        if isinstance(saver, PostgresSaver):
            saver.setup()
        app = compiled(saver)
        ask(app, "one")
        after_one = app.get_state(thread()).config
        ask(app, "two")
        ask(app, "another two", after_one)
        ask(app, "elsewhere", thread("u"))
    return made


def history(saver: Any, name: str) -> list[Any]:
    return list(compiled(saver).get_state_history(thread(name)))


def check_same(original: Any, target: BoughSaver) -> None:
    for name in ("t", "u"):
        theirs, ours = history(original, name), history(target, name)
        assert [state._replace(tasks=()) for state in ours] == [state._replace(tasks=()) for state in theirs]
        assert [state.tasks for state in ours] == [state.tasks for state in theirs]


def test_threads_are_taken_over_and_go_on(source: Source, url: str, bough: Bough) -> None:
    target = new_saver(url)
    told: list[tuple[int, int]] = []
    with source.open() as original:
        total = len(list(original.list(None)))
        assert import_threads(original, target, progress=lambda number, of: told.append((number, of))) == total
        assert told == [(number, total) for number in range(1, total + 1)]
        check_same(original, target)
        stored = bough.session(target._threads.session_id("t")).entries(id_prefix="", limit=500)["entries"]
        assert import_threads(original, target) == 0
        again = bough.session(target._threads.session_id("t")).entries(id_prefix="", limit=500)["entries"]
        assert again == stored
    ask(compiled(target), "three")
    assert conversation(bough, target)[2:] == [
        ("user", "another two"),
        ("assistant", "No. (3)"),
        ("user", "three"),
        ("assistant", "No. (5)"),
    ]


class Stop(Exception):
    pass


def test_an_interrupted_copy_is_completed(source: Source, url: str) -> None:
    """Wherever it stops, what is there is whole, and nothing is copied twice."""
    target = new_saver(url)

    def stop_at(number: int, _: int) -> None:
        if number == 4:
            raise Stop

    with source.open() as original:
        total = len(list(original.list(None)))
        with pytest.raises(Stop):
            import_threads(original, target, progress=stop_at)
        again = BoughSaver(url, prefix=target._threads.prefix)
        assert import_threads(original, again) == total - 4
        check_same(original, again)


def test_only_the_threads_that_are_named(source: Source, url: str) -> None:
    target = new_saver(url)
    with source.open() as original:
        assert import_threads(original, target, ["u"]) == len(history(original, "u"))
    assert history(target, "t") == []


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "boughdb.langgraph", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_the_command(source: Source, url: str) -> None:
    target = new_saver(url)
    words = ["import", source.place, "--server", url, "--prefix", target._threads.prefix]
    first = run(*words, "--json")
    with source.open() as original:
        total = len(list(original.list(None)))
        assert (first.returncode, json.loads(first.stdout)) == (0, {"copied": total}), first.stderr
        check_same(original, target)
    assert first.stderr.splitlines()[-1] == f"{total} of {total} checkpoints"
    second = run(*words)
    assert (second.returncode, second.stdout) == (0, "0 checkpoints were copied\n")


def test_the_command_says_what_is_wrong(url: str, tmp_path: Path) -> None:
    missing = tmp_path / "none.sqlite"
    refused = run("import", str(missing), "--server", url)
    assert (refused.returncode, refused.stderr.startswith(f"error: there is no file {missing}; give")) == (2, True)
    assert not missing.exists()
    nothing = run("import", "postgresql://bough@127.0.0.1:1/postgres", "--server", url)
    assert nothing.returncode == 1 and "cannot be read" in nothing.stderr
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"not a database, and long enough to be looked at as one")
    assert run("import", str(other), "--server", url).returncode == 1

"""A server that the client starts by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boughdb import AsyncBough, Bough, StartFailed
from boughdb._local import LocalServer, find_program, socket_for

PROGRAM = """
import socket, sys
import httpcore
from boughdb import Bough
if sys.argv[3] == "loopback":
    del socket.AF_UNIX
with Bough.local(sys.argv[1], idle_exit=600) as bough:
    bough.session("shared").append(sys.argv[2], create=True)
    print("done", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data directory whose server is ended after the test."""
    yield tmp_path / "data"
    for pid in servers_of(tmp_path / "data"):
        os.kill(pid, signal.SIGKILL)


def servers_of(folder: Path) -> list[int]:
    """The servers that run on a directory."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and os.fsencode(folder) in words:
            found.append(int(process.name))
    return found


def program(folder: Path, text: str, over: str = "socket") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), text, over]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_server_is_started_and_used(folder: Path) -> None:
    with Bough.local(folder) as bough:
        session = bough.create("local")
        session.append("hello")
        assert [item["message"]["role"] for item in session.messages()] == ["user"]
    assert len(servers_of(folder)) == 1


@pytest.mark.anyio
async def test_the_asynchronous_twin_uses_the_same_server(folder: Path) -> None:
    with Bough.local(folder) as bough:
        session_id = bough.create("local").id
    async with AsyncBough.local(folder) as twin:
        assert (await twin.session(session_id).meta())["title"] == "local"
    assert len(servers_of(folder)) == 1


@pytest.mark.parametrize("over", ["socket", "loopback"])
def test_programs_that_start_at_once_share_one_server(folder: Path, over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [program(folder, str(number), over) for number in range(4)]
    for process in programs:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
    if over == "loopback":
        monkeypatch.delattr("socket.AF_UNIX")
    with Bough.local(folder) as bough:
        said = {item["message"]["content"][0]["text"] for item in bough.session("shared").messages()}
    assert said == {"0", "1", "2", "3"}
    assert len(servers_of(folder)) == 1
    for process in programs:
        process.communicate("")


def test_the_server_outlives_the_program_that_started_it(folder: Path) -> None:
    first = program(folder, "first")
    assert first.stdout is not None
    assert first.stdout.readline() == "done\n"
    servers = servers_of(folder)
    first.kill()
    first.communicate()
    with Bough.local(folder) as bough:
        assert len(list(bough.session("shared").messages())) == 1
    assert servers_of(folder) == servers


def test_a_starter_that_is_killed_while_it_waits_hurts_nobody(folder: Path) -> None:
    first = program(folder, "first")
    while not servers_of(folder):
        assert first.poll() is None
    first.kill()
    first.communicate()
    with Bough.local(folder) as bough:
        bough.session("shared").append("second", create=True)
        assert list(bough.session("shared").messages())[-1]["message"]["content"][0]["text"] == "second"
    assert len(servers_of(folder)) == 1


def test_the_claim_of_a_starter_that_was_killed_is_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.AF_UNIX")
    folder.mkdir()
    claim = folder / "local-server.start"
    claim.touch()
    os.utime(claim, (0, 0))
    with Bough.local(folder) as bough:
        bough.create()
    assert not claim.exists()


def test_a_server_that_was_killed_is_started_again(folder: Path) -> None:
    with Bough.local(folder) as bough:
        session = bough.create()
        session.append("before")
        for pid in servers_of(folder):
            os.kill(pid, signal.SIGKILL)
        session.append("after")
        assert len(list(session.messages())) == 2


def test_a_server_ends_after_its_last_client(folder: Path) -> None:
    with Bough.local(folder, idle_exit=1) as bough:
        bough.create()
        (pid,) = servers_of(folder)
    # It is a child of this process: waiting for it ends when it does.
    assert os.waitpid(pid, 0)[1] == 0


def test_a_server_must_wait_for_its_clients(folder: Path) -> None:
    with pytest.raises(ValueError):
        Bough.local(folder, idle_exit=0)


def test_without_unix_sockets_a_loopback_address_and_a_key_are_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.AF_UNIX")
    with Bough.local(folder) as bough:
        session = bough.create()
        session.append("before")
        for pid in servers_of(folder):
            os.kill(pid, signal.SIGKILL)
        session.append("after")
        assert len(list(session.messages())) == 2
    assert not (folder / "server.sock").exists()


def test_a_program_that_cannot_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH", "/bin/false")
    with pytest.raises(StartFailed), Bough.local(folder) as bough:
        bough.create()


def test_there_must_be_a_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOUGH")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StartFailed), Bough.local(folder) as bough:
        bough.create()


def test_the_program_beside_python_is_found_without_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOUGH")
    monkeypatch.setenv("PATH", "")
    program = tmp_path / ("bough.exe" if os.name == "nt" else "bough")
    program.touch()
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    assert find_program() == str(program)


def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    assert len(os.fsencode(socket_for(long))) <= 100
    assert socket_for(long) != socket_for(long / "y")
    assert LocalServer.at(tmp_path, 1).socket == tmp_path / "server.sock"

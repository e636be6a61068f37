"""What the tests of packages share: the packages, clean environments, and programs that are waited for."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

ROOT = Path(os.environ["ROOT"])
PACKAGES = Path(os.environ["PACKAGES"])
NODE_MODULES = Path(os.environ["NODE_MODULES"])
# Far longer than anything takes, so that only what never happens fails.
SECONDS_MAX = 120
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def package(pattern: str) -> Path:
    """The newest package of this name."""
    found = sorted(PACKAGES.glob(pattern), key=lambda file: file.stat().st_mtime)
    assert found, f"no {pattern} in {PACKAGES}"
    return found[-1]


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a new user: nothing of the tester's, but where packages come from."""
    kept = {name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "npm_config_", "ssl_cert"))}
    return {**kept, "HOME": str(home), "PATH": SYSTEM_PATH, "LANG": "C.UTF-8", **more}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def healthz(port: int) -> dict[str, str] | None:
    """The answer of /healthz, or nothing while nobody answers."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
        return json.load(answer)
    return None


def answers(url: str) -> bool:
    """Whether somebody answers there, and well."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False


@contextlib.contextmanager
def running(command: Sequence[str | Path], is_ready: Callable[[], bool], **options: object) -> Iterator[subprocess.Popen[str]]:
    """A program in a process group of its own, from when it is ready until the block ends."""
    with tempfile.TemporaryFile("w+") as log:
        words = [str(word) for word in command]
        process = subprocess.Popen(words, stdout=log, stderr=log, text=True, start_new_session=True, **options)
        try:
            until = time.monotonic() + SECONDS_MAX
            while not is_ready():
                log.seek(0)
                assert process.poll() is None, log.read()
                assert time.monotonic() < until, log.read()
                time.sleep(0.05)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=SECONDS_MAX)


def started(command: Sequence[str | Path], port: int, **options: object) -> AbstractContextManager[subprocess.Popen[str]]:
    """A server of Bough that answers /healthz on a port."""
    return running(command, lambda: healthz(port) == {"status": "ok"}, **options)


def run(command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever that is."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX, check=False, **options)


def ok(command: Sequence[str | Path], **options: object) -> str:
    """Runs a program that has to succeed; what it printed."""
    done = run(command, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def until_ok(command: Sequence[str | Path], **options: object) -> None:
    """Runs a program again and again until it succeeds: a server needs a moment until it knows a new token."""
    until = time.monotonic() + SECONDS_MAX
    while (done := run(command, **options)).returncode != 0:
        assert time.monotonic() < until, done.stderr
        time.sleep(0.05)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder

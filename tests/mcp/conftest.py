"""Servers for the tests. BOUGH names the program, MCP_FIXTURE the one that serves the tools of a file."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_START_SECONDS = 60


class Server:
    """A program that serves HTTP on loopback."""

    def __init__(self, command: list[str], address: str) -> None:
        self.url = f"http://{address}"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        while not self._answers():
            assert self.process.poll() is None, "the server did not start"
            assert time.monotonic() < begun + _START_SECONDS, "the server does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(self.url + "/healthz", timeout=5).status == 200
        except OSError:
            return False

    @property
    def mcp(self) -> str:
        return self.url + "/mcp"

    def send(self, method: str, path: str, body: Any) -> Any:
        """Calls the HTTP API."""
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return json.load(urllib.request.urlopen(request, timeout=30))

    def post(self, body: bytes, **headers: str) -> tuple[int, Any]:
        """Sends the bytes of a message, and returns the status and the body of the answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.mcp, body, {"content-type": "application/json", **named}, method="POST")
        try:
            answer = urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read()
        return answer.status or 0, json.loads(text) if text else None

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def bough(folder: Path) -> Server:
    address = free_address()
    return Server([os.environ["BOUGH"], "serve", "--data-dir", str(folder), "--listen", address, "--bus", "off"], address)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Bough with a session in it."""
    server = bough(tmp_path_factory.mktemp("bough"))
    server.send("PUT", "/v1/sessions/rain", {"title": "Rain", "description": "Whether it will rain."})
    message = {"role": "user", "content": "Will it rain?"}
    server.send("POST", "/v1/sessions/rain/entries", {"entry_id": "first", "message": message})
    yield server
    server.stop()


@pytest.fixture(scope="session")
def fixture_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server with the tools and resources of fixture.json."""
    address = free_address()
    folder = tmp_path_factory.mktemp("fixture")
    server = Server([os.environ["MCP_FIXTURE"], str(folder), address, str(HERE / "fixture.json")], address)
    yield server
    server.stop()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"

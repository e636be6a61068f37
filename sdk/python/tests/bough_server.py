"""A plugin of pytest: a server for the tests. The environment variable BOUGH names the program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from boughdb import Bough, Retries


class Server:
    """A server on a directory of its own, which can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = "127.0.0.1:0"
        self.start()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def start(self) -> None:
        command = [os.environ["BOUGH"], "serve", "--data-dir", str(self.folder), "--listen", self.address, "--bus", "off"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["HTTP"]:
                self.address = words[1].removeprefix("http://")
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("bough") / "data")
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill."""
    server = Server(tmp_path / "data")
    yield server
    server.kill()


@pytest.fixture
def url(server: Server) -> str:
    return server.url


@pytest.fixture
def bough(url: str) -> Iterator[Bough]:
    with Bough(url) as client:
        yield client


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


QUICK = Retries(first_pause=0.0, longest_pause=0.0)


class LossyTransport(httpx.BaseTransport):
    """Hands each request on and loses the first answer to it, as a connection does that breaks at the wrong moment."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()
        self._seen: set[Any] = set()
        self.lost = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._inner.handle_request(request)
        what = (request.method, str(request.url), request.headers.get("idempotency-key"), bytes(request.read()))
        if what in self._seen:
            return response
        self._seen.add(what)
        response.read()
        response.close()
        self.lost += 1
        raise httpx.ReadError("the connection broke", request=request)


@pytest.fixture
def lossy(url: str) -> Iterator[Bough]:
    """A client of which every answer is lost once."""
    with Bough(url, transport=LossyTransport(), retries=QUICK) as client:
        yield client


def texts(session: Any) -> list[str]:
    """What was said on the active path."""
    return ["".join(block.get("text", "") for block in item["message"]["content"]) for item in session.messages()]

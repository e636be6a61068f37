"""A server of one's own: `Bough.local` starts the program `bough` on a socket, and starts it again when it is needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import httpx

from ._errors import StartFailed

# How long the program may take until it answers, in seconds, and how often it is looked for meanwhile.
_START_SECONDS = 30.0
_LOOK_EVERY = 0.02
# What the name of a Unix socket may have, in bytes, on every system that has them.
_SOCKET_NAME_MAX = 100
# How much of the program's last words an error repeats, in bytes.
_LAST_WORDS = 2000
# The file that says that somebody starts a server on a loopback address, and for how many seconds it counts: who made it may
# have been killed.
_CLAIM = "local-server.start"
_CLAIM_SECONDS = 10.0
# How the program ends when another server has the socket, and when no client came in time.
_SERVED_ALREADY = 4
_WAS_IDLE = 0


@dataclass(frozen=True)
class LocalServer:
    """A server on a data directory of this machine, shared by all programs that name the same directory.

    It runs in a session of its own, so that it outlives the program that started it, and ends `idle_exit` seconds after its
    last client. Where there are no Unix sockets, it listens on a loopback address; the key in its directory, which only the
    user can read, stands for a token.
    """

    folder: Path
    idle_exit: int
    # The socket, or `None` where it listens on a loopback address.
    socket: Path | None

    @staticmethod
    def at(folder: str | os.PathLike[str], idle_exit: int) -> LocalServer:
        """The server of a data directory, which need not exist yet."""
        if idle_exit < 1:
            raise ValueError("idle_exit must be at least 1 second")
        whole = Path(folder).absolute()
        return LocalServer(whole, idle_exit, socket_for(whole) if hasattr(socket, "AF_UNIX") else None)

    def ensure(self) -> None:
        """Starts the server unless it answers, and waits until it does."""
        until = time.monotonic() + _START_SECONDS
        process: subprocess.Popen[bytes] | None = None
        while self.address() is None:
            code = process.poll() if process is not None else _SERVED_ALREADY
            if code in (_SERVED_ALREADY, _WAS_IDLE) and self._may_start():
                # Nobody was there yet, or another server has the socket: it answers soon, or is about to end.
                process = self._start()
            elif code not in (None, _SERVED_ALREADY, _WAS_IDLE):
                raise StartFailed(f"bough ended with {code}: {self._last_words()}")
            if time.monotonic() > until:
                raise StartFailed(f"bough does not answer on {self.folder}: {self._last_words()}")
            time.sleep(_LOOK_EVERY)
        if process is not None and self.socket is None:
            (self.folder / _CLAIM).unlink(missing_ok=True)

    def address(self) -> str | None:
        """Where a server of this directory answers."""
        if self.socket is not None:
            return "http://localhost" if _answers(socket.AF_UNIX, str(self.socket)) else None
        for file in self.folder.glob("processes/*"):
            address = httpx.URL(file.read_text().strip() or "http://localhost:0")
            if _answers(socket.AF_INET, (address.host, address.port or 0)):
                return str(address)
        return None

    def key(self) -> str | None:
        """What a request over a loopback address has to show."""
        file = self.folder / "server.key"
        return file.read_text().strip() if self.socket is None and file.exists() else None

    def _may_start(self) -> bool:
        """Whether this program is the one to start the server. A socket has one server; of loopback addresses there are many."""
        if self.socket is not None:
            return True
        claim = self.folder / _CLAIM
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            if time.time() - claim.stat().st_mtime > _CLAIM_SECONDS:
                claim.unlink()
        except FileNotFoundError:
            pass
        try:
            claim.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [find_program(), "serve", "--data-dir", str(self.folder), "--idle-exit", str(self.idle_exit)]
        place = ["--listen", "127.0.0.1:0", "--bus", "off"] if self.socket is None else ["--socket", str(self.socket)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command + place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    @property
    def _log(self) -> Path:
        return self.folder / "local-server.log"

    def _last_words(self) -> str:
        return self._log.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip() or "it said nothing"


def _answers(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False
    return True


def socket_for(folder: Path) -> Path:
    """The socket of a data directory: inside of it, or in the temporary folder where its name would be too long."""
    inside = folder / "server.sock"
    if len(os.fsencode(inside)) <= _SOCKET_NAME_MAX:
        return inside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    return Path(tempfile.gettempdir()) / f"bough-{digest}.sock"


def find_program() -> str:
    """The program that came with this package, or the one on the `PATH`; the variable `BOUGH` names another one."""
    found = os.environ.get("BOUGH") or _installed_program() or shutil.which("bough")
    if found is None:
        raise StartFailed("there is no program `bough` on the PATH; install it, or set BOUGH to where it is")
    return found


def _installed_program() -> str | None:
    """The program among the scripts of this Python, of its user, or of the folder that `pip install --target` filled.

    Scripts are on the `PATH` only where the environment was activated.
    """
    name = "bough.exe" if sys.platform == "win32" else "bough"
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    folders.append(str(Path(__file__).parents[1] / "bin"))
    return next((str(file) for file in (Path(folder, name) for folder in folders) if file.is_file()), None)


class _Route:
    """Where requests go: to the socket, or to the address at which the server was found last."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self._address: str | None = "http://localhost" if server.socket is not None else None

    def find(self) -> None:
        """Starts the server when nobody answers, and learns where it is."""
        self.server.ensure()
        self._address = self.server.address()

    def direct(self, request: httpx.Request) -> None:
        """Sends a request to the server."""
        if self._address is None:
            raise httpx.ConnectError("the server was not found yet", request=request)
        place = httpx.URL(self._address)
        request.url = request.url.copy_with(host=place.host, port=place.port)
        key = self.server.key()
        if key is not None:
            request.headers["Authorization"] = f"Bearer {key}"


class LocalTransport(httpx.BaseTransport):
    """Sends requests to a local server, and starts it when nobody listens."""

    def __init__(self, server: LocalServer) -> None:
        self._route = _Route(server)
        self._inner = httpx.HTTPTransport(uds=str(server.socket) if server.socket is not None else None)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            self._route.direct(request)
            return self._inner.handle_request(request)
        except httpx.ConnectError:
            self._route.find()
            self._route.direct(request)
            return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class AsyncLocalTransport(httpx.AsyncBaseTransport):
    """The asynchronous twin of `LocalTransport`."""

    def __init__(self, server: LocalServer) -> None:
        self._route = _Route(server)
        self._inner = httpx.AsyncHTTPTransport(uds=str(server.socket) if server.socket is not None else None)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            self._route.direct(request)
            return await self._inner.handle_async_request(request)
        except httpx.ConnectError:
            await anyio.to_thread.run_sync(self._route.find)
            self._route.direct(request)
            return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

"""The container image, from its unpacked root: what a container engine would run, as it would run it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import struct
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme
from conftest import ok, package, run, started

# Where our name server listens: nobody else does on this address.
NAME_SERVER = "127.77.17.53"
NAME = "store.test"


class Image:
    """An image, unpacked."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        with tarfile.open(package("bough-*-image.tar")) as archive:
            archive.extractall(folder / "archive", filter="data")
        (manifest,) = json.loads((folder / "archive/manifest.json").read_text())
        self.config = json.loads((folder / "archive" / manifest["Config"]).read_text())["config"]
        for layer in manifest["Layers"]:
            # Owners matter here: the volume is the user's.
            ok(["tar", "--extract", "--same-owner", "--file", folder / "archive" / layer, "--directory", self.root])
        folder.chmod(0o755)

    def command(self, *words: str) -> list[str | Path]:
        """A command in the image, as its user."""
        return ["/usr/sbin/chroot", f"--userspec={self.config['User']}", self.root, *words]

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the image, and what is added to it."""
        return {**dict(value.split("=", 1) for value in self.config["Env"]), **more}

    def serve(self, port: int, **environment: str) -> contextlib.AbstractContextManager[object]:
        command = self.command(*self.config["Entrypoint"], *self.config["Cmd"])
        return started(command, port, env=self.environment(BOUGH_LISTEN=f"0.0.0.0:{port}", **environment))

    def health(self, *words: str, **environment: str) -> tuple[int, str]:
        kind, *command = self.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        done = run(self.command(*command, *words), env=self.environment(**environment))
        return done.returncode, done.stderr


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_it_serves_as_another_user_and_its_check_follows(image: Image, port: int) -> None:
    assert image.config["User"] == "10001:10001"
    assert "/data" in image.config["Volumes"]
    there = f"127.0.0.1:{port}"
    with image.serve(port):
        assert image.health(BOUGH_LISTEN=there) == (0, "")
        data = image.root / "data"
        assert data.stat().st_uid == 10001 and any(data.iterdir())
        # Everybody needs a token from the first start on.
        listed = run(image.command("/usr/bin/bough", "ls", "--server", f"http://{there}", "--token", "wrong"), env=image.environment())
        assert listed.returncode == 6, listed.stderr
    code, problem = image.health(BOUGH_LISTEN=there)
    assert code == 1 and there in problem


def test_nothing_is_in_it_but_what_the_program_needs(image: Image) -> None:
    files = [file for file in image.root.rglob("*") if file.is_file()]
    programs = [file.name for file in files if os.access(file, os.X_OK) and ".so" not in file.name]
    assert programs == ["bough"]


def test_it_resolves_names(image: Image, port: int) -> None:
    (image.root / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions attempts:1 timeout:2\n")
    with image.serve(port, BOUGH_HOST=NAME):
        with name_server():
            assert image.health("--server", f"http://{NAME}:{port}") == (0, "")
        assert image.health("--server", f"http://other.test:{port}")[0] == 1


def test_it_verifies_certificates(image: Image) -> None:
    authorities = image.root / "etc/ssl/certs/ca-certificates.crt"
    assert authorities.read_bytes().count(b"BEGIN CERTIFICATE") > 50
    authority = trustme.CA()
    with secure_server(authority) as port:
        address = f"https://127.0.0.1:{port}"
        code, problem = image.health("--server", address)
        assert code == 1 and "certificate" in problem.lower(), problem
        with authorities.open("ab") as file:
            file.write(b"\n" + authority.cert_pem.bytes())
        assert image.health("--server", address) == (0, "")


@contextlib.contextmanager
def name_server() -> Iterator[None]:
    """Answers every question for our name with 127.0.0.1, and every other one with nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((NAME_SERVER, 53))
        thread = threading.Thread(target=answer_questions, args=(listener,), daemon=True)
        thread.start()
        yield
        listener.sendto(b"", (NAME_SERVER, 53))
        thread.join()


def answer_questions(listener: socket.socket) -> None:
    wanted = b"".join(bytes([len(part)]) + part.encode() for part in NAME.split(".")) + b"\0"
    while True:
        question, peer = listener.recvfrom(512)
        if not question:
            return
        end = question.index(b"\0", 12) + 5
        is_ours = question[12 : end - 4] == wanted and question[end - 4 : end - 2] == b"\0\x01"
        head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, int(is_ours), 0, 0)
        answer = struct.pack("!HHHIH4s", 0xC00C, 1, 1, 60, 4, socket.inet_aton("127.0.0.1")) if is_ours else b""
        listener.sendto(head + question[12:end] + answer, peer)


class Ready(BaseHTTPRequestHandler):
    """The page of a server that is ready."""

    def do_GET(self) -> None:
        body = b'{"status": "ready"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: object) -> None:
        pass


@contextlib.contextmanager
def secure_server(authority: trustme.CA) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = HTTPServer(("127.0.0.1", 0), Ready)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

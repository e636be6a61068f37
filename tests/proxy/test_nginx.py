"""nginx before a server on loopback that asks for no token."""

import json
import os
import pathlib
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

BOUGH = os.environ["BOUGH"]
PAGE = pathlib.Path(__file__).parents[2] / "docs/operations/proxy.md"

# nginx with only the address to pass requests on to.
PLAIN = "proxy_pass http://127.0.0.1:{port};"
# What Debian's proxy_params add, and HTTP/1.1 as newer versions speak it.
WITH_HEADERS = (
    "proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1;"
    " proxy_set_header X-Real-IP $remote_addr;"
    " proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server in a folder of its own."""

    def __init__(self, folder: pathlib.Path, config: str = "", token: bool = False):
        folder.mkdir()
        (folder / "config.yaml").write_text(config)
        self.token = None
        if token:
            made = subprocess.run(
                [BOUGH, "token", "create", "--json", "--data-dir", folder],
                check=True,
                capture_output=True,
            )
            self.token = json.loads(made.stdout)["token"]
        self.process = subprocess.Popen(
            [BOUGH, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0", "--bus", "off"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self.process.stdout:
            if line.split()[:1] == ["HTTP"]:
                self.port = int(line.rsplit(":", 1)[1])
                break

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


class Nginx:
    """nginx that passes everything on."""

    def __init__(self, folder: pathlib.Path, how: str, port: int):
        self.port = free_port()
        folder.mkdir()
        for name in ("log", "body"):
            (folder / name).mkdir()
        paths = " ".join(
            f"{kind}_temp_path {folder}/body;"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = folder / "nginx.conf"
        config.write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/log/error;"
            f"events {{}} http {{ access_log off; {paths}"
            f" server {{ listen 127.0.0.1:{self.port}; location / {{ {how.format(port=port)} }} }} }}"
        )
        self.process = subprocess.Popen(["nginx", "-c", config, "-e", folder / "log" / "error"])
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def status(port: int, path: str, token: str | None = None, host: str | None = None) -> tuple[int, str]:
    """The status of an answer, and the code of the problem that it is."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if host:
        request.add_header("host", host)
    if token:
        request.add_header("authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["code"]


@pytest.fixture
def started():
    running = []
    yield running
    for one in reversed(running):
        one.end()


@pytest.mark.parametrize("how", [PLAIN, WITH_HEADERS], ids=["plain", "with headers"])
def test_what_nginx_passes_on_is_refused_without_tokens(tmp_path, started, how):
    server = Server(tmp_path / "data")
    started.append(server)
    nginx = Nginx(tmp_path / "nginx", how, server.port)
    started.append(nginx)
    assert status(server.port, "/v1/sessions") == (200, "")
    assert status(nginx.port, "/healthz") == (200, "")
    assert status(nginx.port, "/v1/sessions") == (403, "guard/proxy_not_trusted")


def test_a_proxy_that_is_trusted_passes_on(tmp_path, started):
    server = Server(tmp_path / "data", "allow: {proxies: ['127.0.0.1']}")
    started.append(server)
    nginx = Nginx(tmp_path / "nginx", PLAIN, server.port)
    started.append(nginx)
    assert status(nginx.port, "/v1/sessions") == (200, "")


def test_with_tokens_a_proxy_needs_no_trust(tmp_path, started):
    server = Server(tmp_path / "data", token=True)
    started.append(server)
    nginx = Nginx(tmp_path / "nginx", WITH_HEADERS, server.port)
    started.append(nginx)
    assert status(nginx.port, "/v1/sessions") == (401, "guard/token_needed")
    assert status(nginx.port, "/v1/sessions", server.token) == (200, "")


def test_the_settings_of_the_page_about_proxies_work(tmp_path, started):
    page = PAGE.read_text()
    location = re.search(r"```nginx\nlocation / \{\n(.*?)^\}\n```", page, re.M | re.S).group(1)
    config = re.search(r"```yaml\n(.*?)```", page, re.S).group(1)
    server = Server(tmp_path / "data", config, token=True)
    started.append(server)
    nginx = Nginx(tmp_path / "nginx", location.replace("127.0.0.1:7717", "127.0.0.1:{port}"), server.port)
    started.append(nginx)
    assert status(nginx.port, "/v1/sessions", server.token, host="other.example")[0] == 421
    assert status(nginx.port, "/v1/sessions", server.token, host="bough.example") == (200, "")
    assert first_line_of_events(nginx.port, server.token) == b": ok\n"


def first_line_of_events(port: int, token: str) -> bytes:
    """What comes first of a stream that does not end."""
    headers = {"authorization": f"Bearer {token}", "host": "bough.example"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/events", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.readline()

"""The compose file, and its nginx before the program of the archive."""

from __future__ import annotations

import json
import re
import socket
import ssl
import sys
import urllib.request
from pathlib import Path

import trustme
from conftest import PACKAGES, ROOT, clean_environment, free_port, ok, run, running, started, until_ok

FOLDER = ROOT / "packaging/compose"
PROGRAM = PACKAGES / "work/x86_64-unknown-linux-gnu/program/bough"


def test_the_compose_file_is_valid() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    ok([checker, "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"])


def test_it_names_the_version_of_the_image() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    assert f"BOUGH_VERSION:-{version}" in (FOLDER / "compose.yaml").read_text()


def nginx_config(folder: Path, port: int, bough: int) -> Path:
    """The configuration as it is, with the places of this machine in it."""
    server = (FOLDER / "nginx.conf").read_text()
    for there, here in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/certs": str(folder),
        "http://bough:7717": f"http://127.0.0.1:{bough}",
    }.items():
        assert there in server
        server = server.replace(there, here)
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = folder / "nginx.conf"
    config.write_text(f"daemon off; pid {folder}/pid; events {{}} http {{ access_log off; {temporary} {server} }}")
    return config


def test_bough_behind_its_nginx(tmp_path: Path, home: Path, port: int) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "privkey.pem")
    for part in certificate.cert_chain_pems:
        part.write_to_path(tmp_path / "fullchain.pem", append=True)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    secure = free_port()
    config = nginx_config(tmp_path, secure, port)
    nginx = ["nginx", "-e", tmp_path / "error.log", "-c", config]
    assert "test is successful" in run([*nginx, "-t"]).stderr
    bough = clean_environment(home, BOUGH_LISTEN=f"127.0.0.1:{port}", BOUGH_CONFIG=str(ROOT / "packaging/container/config.yaml"))
    outside = clean_environment(home, SSL_CERT_FILE=str(tmp_path / "ca.pem"), BOUGH_SERVER=f"https://localhost:{secure}")
    with started([PROGRAM, "serve"], port, env=bough), running(nginx, lambda: listens(secure)):
        ok([PROGRAM, "health"], env=outside)
        # Without the authority the certificate is worth nothing.
        assert run([PROGRAM, "health"], env={**outside, "SSL_CERT_FILE": "/nonexistent"}).returncode == 1
        assert run([PROGRAM, "ls"], env=outside).returncode == 6
        token = json.loads(ok([PROGRAM, "token", "create", "--json"], env=bough))["token"]
        assert run([PROGRAM, "ls"], env={**outside, "BOUGH_TOKEN": "wrong"}).returncode == 6
        until_ok([PROGRAM, "ls"], env={**outside, "BOUGH_TOKEN": token})
        trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        events_come_at_once(f"https://localhost:{secure}/v1/events", token, trusting)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def events_come_at_once(url: str, token: str, context: ssl.SSLContext) -> None:
    """The stream says where it begins before anything happens; a proxy that collects would keep that."""
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60, context=context) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline()

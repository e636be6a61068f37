"""What the checks of documents and examples share: a server, and the TypeScript compiler."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

PROGRAM = Path(os.environ["BOUGH"]).resolve()
SECONDS_MAX = 120


class Address(str):
    """Where a server answers HTTP, as HOST:PORT, and where its bus is."""

    bus = ""


@contextlib.contextmanager
def serving(folder: Path, has_bus: bool = False) -> Iterator[Address]:
    """A server on a folder; gives its address."""
    command = [str(PROGRAM), "serve", "--data-dir", str(folder), "--listen", "127.0.0.1:0"]
    command += ["--bus", "127.0.0.1:0" if has_bus else "off"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        found: dict[str, str] = {}
        for line in process.stdout:
            name, _, value = line.strip().partition(" ")
            found[name] = value.strip().partition("://")[2]
            if name == "data":
                break
        assert found.get("HTTP"), "the server did not start"
        address = Address(found["HTTP"])
        address.bus = found.get("bus", "")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=SECONDS_MAX)
        process.stdout.close()


def compile_ts(root: Path, code: str, folder: Path) -> Path:
    """Checks the types of a program that uses the client, and gives the program without them."""
    client = root / "sdk/typescript"
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "boughdb").symlink_to(client)
    (modules / "@types").symlink_to(client / "node_modules/@types")
    source = folder / "page.mts"
    source.write_text(code)
    compiler = client / "node_modules/typescript/bin/tsc"
    options = ["--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--strict", "--types", "node"]
    done = subprocess.run(
        ["node", str(compiler), *options, str(source)],
        cwd=folder,
        timeout=SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return folder / "page.mjs"

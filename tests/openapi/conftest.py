"""A server, its document, and the tools."""

import json
import os
import pathlib
import signal
import subprocess
import urllib.request

import pytest

TOOLS = pathlib.Path(os.environ["OPENAPI_TOOLS"])
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The address of a server on a fresh directory."""
    folder = tmp_path_factory.mktemp("data")
    command = [os.environ["BOUGH"], "serve", "--data-dir", str(folder), "--listen", "127.0.0.1:0", "--bus", "off"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield next(line.split()[1] for line in process.stdout if line.split()[:1] == ["HTTP"])
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def document(server):
    with urllib.request.urlopen(f"{server}/openapi.json", timeout=20) as answer:
        return json.load(answer)


@pytest.fixture(scope="session")
def document_file(document, tmp_path_factory):
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(json.dumps(document, indent=1))
    return path


@pytest.fixture(scope="session")
def operations(document):
    """Every operation by its id."""
    items = (item.values() for item in document["paths"].values())
    return {operation["operationId"]: operation for item in items for operation in item}


def run(*command, folder=None):
    """What a program prints; it must end well."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout + done.stderr


def node_tool(name):
    return TOOLS / "node_modules" / ".bin" / name


def python_tool(name):
    return TOOLS / "python" / "bin" / name

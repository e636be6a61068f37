"""The source of the client itself: its blocking form, its examples, and the parser of events."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boughdb import Bough
from boughdb._sse import ServerSentEvent, SseDecoder

HERE = Path(__file__).resolve().parent
MODULES = ["boughdb", "boughdb._sync.client", "boughdb._sync.session"]


def test_the_blocking_client_is_made_from_the_asynchronous_one() -> None:
    subprocess.run([sys.executable, str(HERE.parent / "tools" / "make_sync.py"), "--check"], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_documentation_run(name: str, bough: Bough, url: str, tmp_path: Path) -> None:
    module = importlib.import_module(name)
    found = doctest.testmod(module, extraglobs={"bough": bough, "url": url, "Bough": Bough, "folder": tmp_path})
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_in_any_pieces(size: int) -> None:
    stream = ": hello\nretry: 1\n\nid: 1\nevent: a\ndata: x\u2028y\ndata: z\r\n\r\ndata:plain\n\nid: 2\n\n: bye\n".encode()
    decoder = SseDecoder()
    events: list[ServerSentEvent] = []
    for start in range(0, len(stream), size):
        events.extend(decoder.feed(stream[start : start + size]))
    assert events == [ServerSentEvent("a", "x\u2028y\nz", "1"), ServerSentEvent("message", "plain", "1")]
    assert decoder.last_id == "2"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "../../docs/PYTHON.md"])
def test_the_examples_of_the_pages_run(page: str, bough: Bough, url: str, tmp_path: Path) -> None:
    blocks = python_blocks(HERE.parent / page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"bough": bough, "url": url, "folder": tmp_path / "data"})

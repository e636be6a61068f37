"""Runs the code blocks of Markdown pages against a server, each page on a server of its own.

The blocks of one language on one page are one program, so that later ones see what earlier ones made:

    sh, ts, python    run
    rust              run by the tests of `boughdb`: its doctests include the page, or `tests/it/documents.rs` has the block
    console           shows what a person types; the commands and flags of `bough` in it must exist
    json              must be JSON, and directly below a program what one of the page prints
    yaml              a configuration, which the program checks
    nginx             a part of a server of nginx, which checks it
    text              on a page with programs, lines that one of them prints, where … is anything; elsewhere shown only

A block of another language fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from server import PROGRAM, SECONDS_MAX, compile_ts, serving

PAGES = ["README.md", "examples/README.md", "docs/*.md", "docs/[!d]*/*.md"]
# The stage `python` runs its blocks.
RUN_ELSEWHERE = {"docs/PYTHON.md"}

ROOT = Path(sys.argv[1]).resolve()
DOCTESTS = (ROOT / "crates/boughdb/src/lib.rs").read_text()
RUST_TESTS = ROOT / "crates/boughdb/tests/it/documents.rs"


def blocks(page: Path) -> dict[str, list[str]]:
    """The blocks of a page, by language."""
    found: dict[str, list[str]] = {}
    for language, code in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page.read_text(), re.M | re.S):
        found.setdefault(language, []).append(code)
    return found


def make_conversation(address: str) -> None:
    """The conversation that the pages about the command line find."""
    body = {"entries": [{"message": {"role": "user", "content": "Will it rain tomorrow?"}}], "create": True}
    body["meta"] = {"title": "Weather"}
    request = urllib.request.Request(
        f"http://{address}/v1/sessions/weather/entries/batch",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=SECONDS_MAX).close()


def prepare_sh(code: str, folder: Path) -> list[str]:
    script = folder / "page.sh"
    script.write_text(code)
    return ["sh", "-eu", str(script)]


def prepare_python(code: str, folder: Path) -> list[str]:
    script = folder / "page.py"
    script.write_text(code)
    return [sys.executable, str(script)]


def prepare_ts(code: str, folder: Path) -> list[str]:
    return ["node", str(compile_ts(ROOT, code, folder))]


RUNNERS: dict[str, Callable[[str, Path], list[str]]] = {"sh": prepare_sh, "python": prepare_python, "ts": prepare_ts}


def run_program(language: str, code: str) -> str:
    """Runs a program on a server that has a conversation in it, and gives what it printed."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name, "data"), has_bus=":49134" in code) as address:
        folder = Path(name)
        make_conversation(address)
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": name}
        if language == "sh":
            environment["BOUGH_DATA_DIR"] = str(folder / "data")
        else:
            environment["BOUGH_SERVER"] = f"http://{address}"
        code = code.replace("localhost:7717", address).replace("localhost:49134", address.bus)
        command = RUNNERS[language](code, folder)
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def check_console(code: str) -> None:
    """Every command of `bough` that is shown exists, and so do its flags."""
    lines = [line[2:] for line in code.splitlines() if line.startswith("$ ")]
    assert lines, "no line begins with '$ '"
    for line in lines:
        for command in re.findall(r"(?:^|[|;&] *|-- )bough ([a-z][^|;&#]*)", line):
            check_command(command)


def check_command(command: str) -> None:
    words = command.split()
    help_text = ""
    for depth in (2, 1):
        names = words[:depth]
        if all(re.fullmatch(r"[a-z-]+", name) and not name.startswith("-") for name in names):
            asked = subprocess.run([PROGRAM, *names, "--help"], capture_output=True, text=True, check=False)
            if asked.returncode == 0:
                help_text = asked.stdout
                break
    assert help_text, f"there is no command 'bough {words[0]}'"
    for flag in re.findall(r"(?<= )--?[a-z][a-z-]*", f" {command}"):
        assert re.search(rf"(?<![\w-]){flag}(?![\w-])", help_text), f"'bough {words[0]}' has no flag {flag}"


def documents(text: str) -> list[object]:
    """The JSON documents in a text."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (begin := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            document, at = decoder.raw_decode(text, begin.start())
            found.append(document)
        except ValueError:
            at = begin.end()
    return found


def check_json(page: Path, printed: str) -> None:
    for code in blocks(page)["json"]:
        json.loads(code)
    for code in re.findall(r"^```\n\n```json\n(.*?)^```$", page.read_text(), re.M | re.S) if printed else ():
        assert json.loads(code) in documents(printed), f"nothing on the page prints {code}"


def check_text(page: Path, printed: str) -> None:
    for line in "\n".join(blocks(page)["text"]).splitlines() if printed else ():
        pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
        assert re.search(rf"^\s*{pattern}\s*$", printed, re.M), f"nothing on the page prints {line!r}; it prints\n{printed}"


def check_yaml(code: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.yaml")
        file.write_text(code)
        checked = subprocess.run([PROGRAM, "config", "check", "--config", file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def check_nginx(code: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "nginx.conf")
        server = f"server {{ listen 127.0.0.1:8080; {code} }}"
        file.write_text(f"pid {folder}/pid; error_log {folder}/log; events {{}} http {{ access_log off; {server} }}")
        checked = subprocess.run([os.environ["NGINX"], "-t", "-c", file, "-p", folder], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def check_rust(page: Path, code: str) -> None:
    included = page.relative_to(ROOT)
    if f'"../../../{included}"' not in DOCTESTS:
        program = [line.strip() for line in RUST_TESTS.read_text().splitlines()]
        block = [line.strip() for line in code.splitlines()]
        is_there = any(program[at : at + len(block)] == block for at in range(len(program)))
        assert is_there, f"{RUST_TESTS.name} of boughdb has no such lines:\n{code}"


CHECKS: dict[str, Callable[[str], None]] = {"console": check_console, "yaml": check_yaml, "nginx": check_nginx}
# What programs of the same page print.
OUTPUTS: dict[str, Callable[[Path, str], None]] = {"json": check_json, "text": check_text}


def check_page(page: Path) -> Iterator[tuple[str, str | None]]:
    """The languages of a page, each with what is wrong."""
    printed = ""
    for language, found in sorted(blocks(page).items(), key=lambda item: item[0] in OUTPUTS):
        try:
            if language in RUNNERS:
                printed += run_program(language, "\n".join(found))
            elif language in OUTPUTS:
                OUTPUTS[language](page, printed)
            elif language == "rust":
                for code in found:
                    check_rust(page, code)
            else:
                assert language in CHECKS, f"a block is marked {language!r}, which nothing runs"
                for code in found:
                    CHECKS[language](code)
            yield language, None
        except (AssertionError, ValueError, subprocess.TimeoutExpired) as problem:
            yield language, str(problem)


def main() -> int:
    began, passed, failed = time.monotonic(), 0, 0
    for page in sorted({page for pattern in PAGES for page in ROOT.glob(pattern)}):
        name = str(page.relative_to(ROOT))
        for language, problem in check_page(page) if name not in RUN_ELSEWHERE else ():
            if problem is None:
                passed += 1
            else:
                print(f"{name}: the {language} blocks failed\n{problem}")
                failed += 1
    # In the form that `cargo xtask test` counts.
    print(f"{passed} passed, {failed} failed in {time.monotonic() - began:.1f}s")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

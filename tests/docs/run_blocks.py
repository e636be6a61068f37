"""Runs the code blocks of Markdown pages against a server, each page on a server of its own.

The blocks of one language on one page are one program, so that later ones see what earlier ones made:

    sh, ts, python    run
    rust              run by the doctests of `boughdb`, which include the page
    console           shows what a person types; the commands and flags of `bough` in it must exist
    json              must be JSON
    text, yaml, ini, nginx   shown only

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
from collections.abc import Callable
from pathlib import Path

from server import PROGRAM, SECONDS_MAX, compile_ts, serving

PAGES = ["README.md", "docs/*.md", "docs/start/*.md", "docs/guides/*.md", "docs/operations/*.md"]
# Pages whose blocks are formats, not examples.
NOT_RUN = {"docs/FORMAT.md", "docs/FORMATS.md", "docs/RECOVERY.md", "docs/INTEGRATION.md", "docs/PYTHON.md"}
SHOWN = {"text", "yaml", "ini", "nginx"}

ROOT = Path(sys.argv[1]).resolve()
DOCTESTS = (ROOT / "crates/boughdb/src/lib.rs").read_text()


def blocks(page: Path) -> dict[str, str]:
    """The programs of a page, by language."""
    programs: dict[str, str] = {}
    for language, code in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page.read_text(), re.M | re.S):
        programs[language] = programs.get(language, "") + code + "\n"
    return programs


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


def run_program(language: str, code: str) -> None:
    """Runs a program on a server that has a conversation in it."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name, "data")) as address:
        folder = Path(name)
        make_conversation(address)
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": name}
        if language == "sh":
            environment["BOUGH_DATA_DIR"] = str(folder / "data")
        else:
            environment["BOUGH_SERVER"] = f"http://{address}"
        command = RUNNERS[language](code.replace("localhost:7717", address), folder)
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


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


def check_json(code: str) -> None:
    decoder, text = json.JSONDecoder(), code.strip()
    while text:
        _, end = decoder.raw_decode(text)
        text = text[end:].strip()


def check_block(page: Path, language: str, code: str) -> None:
    if language in RUNNERS:
        run_program(language, code)
    elif language == "console":
        check_console(code)
    elif language == "json":
        check_json(code)
    elif language == "rust":
        included = page.relative_to(ROOT)
        assert f'"../../../{included}"' in DOCTESTS, f"the doctests of boughdb do not include {included}"
    else:
        assert language in SHOWN, f"a block is marked {language!r}, which nothing runs"


def main() -> int:
    began, passed, failed = time.monotonic(), 0, 0
    for page in sorted(page for pattern in PAGES for page in ROOT.glob(pattern)):
        if str(page.relative_to(ROOT)) in NOT_RUN:
            continue
        for language, code in blocks(page).items():
            try:
                check_block(page, language, code)
                passed += 1
            except (AssertionError, ValueError, subprocess.TimeoutExpired) as problem:
                print(f"{page.relative_to(ROOT)}: the {language} blocks failed\n{problem}")
                failed += 1
    # In the form that `cargo xtask test` counts.
    print(f"{passed} passed, {failed} failed in {time.monotonic() - began:.1f}s")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

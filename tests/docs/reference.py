"""Makes the pages of the reference that the program describes itself: commands, configuration, routes, events and errors.

    reference.py ROOT            writes the pages
    reference.py ROOT --check    fails when a page differs from what the program says

BOUGH names the program.
"""

from __future__ import annotations

import difflib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from server import PROGRAM, SECONDS_MAX, serving

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NO_COLOR": "1", "COLUMNS": "100"}
DIFFERENCES_MAX = 40


def ask(*arguments: str) -> str:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def subcommands(text: str) -> list[str]:
    """The names below `Commands:` in a help text."""
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)
    names = re.findall(r"^  ([a-z-]+) ", listed.group(1), re.M) if listed else []
    return [name for name in names if name != "help"]


def without_global_options(text: str) -> str:
    """Global options are shown once, at the program itself."""
    return re.sub(r"\n\nGlobal options:\n.*?(?=\n\n[A-Z][^\n]*:\n|\Z)", "", text, flags=re.S)


def commands_page() -> str:
    main = ask("--help")
    parts = ["# Commands", "", "This page is made from `bough --help`.", "", "```text", main, "```"]
    for name in subcommands(main):
        text = ask(name, "--help")
        parts += ["", f"## bough {name}", "", "```text", without_global_options(text), "```"]
        for inner in subcommands(text):
            inner_text = without_global_options(ask(name, inner, "--help"))
            parts += ["", f"### bough {name} {inner}", "", "```text", inner_text, "```"]
    return "\n".join(parts) + "\n"


def configuration_page() -> str:
    intro = (
        "This page is made from `bough config example`, which prints a file with every field, its default and what it means.\n"
        "`bough config check` checks a file; `bough config show` prints what a server would run with."
    )
    return f"# Configuration\n\n{intro}\n\n```yaml\n{ask('config', 'example')}\n```\n"


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each operation of the API with its route, in the order of the paths."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def routes_page(document: dict[str, Any]) -> str:
    intro = (
        "This page is made from `/openapi.json`. A running server shows each operation with its fields and an example in curl, Python and\n"
        "TypeScript at `/docs`; [every function](../INTEGRATION.md) has the fields too, and [HTTP](http.md) says what holds for all."
    )
    rows = [f"| `{route}` | {operation['summary']} | `{operation['operationId']}` |" for route, operation in operations(document)]
    return "\n".join(["# Routes", "", intro, "", "| route | what it does | name |", "|---|---|---|", *rows]) + "\n"


def events_page(document: dict[str, Any]) -> str:
    intro = (
        "This page is made from `/openapi.json`. These are the events of `GET /v1/sessions/{session_id}/events` and `GET /v1/events`;\n"
        "[HTTP](http.md#streams-of-events) says how to read such a stream. On [the bus](bus.md) a message that grows comes whole, as\n"
        "`session::message-updated`, and the others come as the `payload` alone."
    )
    parts = ["# Live events", "", intro]
    for name, event in stream_events(document).items():
        example = json.dumps(event["example"], indent=2)
        parts += ["", f"## {name}", "", event["description"], "", "```json", example, "```"]
    return "\n".join(parts) + "\n"


def stream_events(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, operation in operations(document):
        found.update(operation["responses"].get("200", {}).get("x-events", {}))
    return found


def errors_page(page: str) -> str:
    """The table of `/docs#errors`."""
    rows = re.findall(r'<td><a href="/docs/errors/[^"]+">([^<]+)</a></td><td>([^<]*)</td><td>(.*?)</td>', page)
    lines = [f"| `{code}` | {status} | {as_markdown(meaning)} |" for code, status, meaning in rows]
    intro = (
        "This page is made from the program. Over HTTP the field `code` of a problem has the code, and its `type` is the path of a page of the\n"
        "server about it; on [the bus](bus.md) the message of a failed call is `handler error: CODE: TEXT`."
    )
    return "\n".join(["# Error codes", "", intro, "", "| code | status | what it means, and what to do |", "|---|---|---|", *lines]) + "\n"


def as_markdown(text: str) -> str:
    return html.unescape(re.sub(r"</?code>", "`", text)).replace("|", "\\|")


def pages() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        document, reference = (
            urllib.request.urlopen(f"http://{address}{path}", timeout=SECONDS_MAX).read().decode() for path in ("/openapi.json", "/docs")
        )
    api = json.loads(document)
    return {
        "commands.md": commands_page(),
        "configuration.md": configuration_page(),
        "routes.md": routes_page(api),
        "events.md": events_page(api),
        "errors.md": errors_page(reference),
    }


def main() -> int:
    folder = Path(sys.argv[1], "docs", "reference")
    stale = 0
    for name, text in pages().items():
        page = folder / name
        if "--check" not in sys.argv:
            page.write_text(text)
        elif page.read_text() != text:
            stale += 1
            lines = difflib.unified_diff(page.read_text().splitlines(), text.splitlines(), str(page), str(PROGRAM), n=1, lineterm="")
            print("\n".join(list(lines)[:DIFFERENCES_MAX]))
    if stale:
        print("docs/reference differs from what the program says; BOUGH=PROGRAM python3 tests/docs/reference.py . writes it again")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

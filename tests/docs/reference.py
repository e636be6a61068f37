"""Makes the pages of the reference that the program describes itself: commands and configuration.

    reference.py ROOT            writes the pages
    reference.py ROOT --check    fails when a page differs from what the program says

BOUGH names the program.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = os.environ["BOUGH"]
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


PAGES = {"commands.md": commands_page, "configuration.md": configuration_page}


def main() -> int:
    folder = Path(sys.argv[1], "docs", "reference")
    stale = 0
    for name, make in PAGES.items():
        page, text = folder / name, make()
        if "--check" not in sys.argv:
            page.write_text(text)
        elif page.read_text() != text:
            stale += 1
            lines = difflib.unified_diff(page.read_text().splitlines(), text.splitlines(), str(page), PROGRAM, n=1, lineterm="")
            print("\n".join(list(lines)[:DIFFERENCES_MAX]))
    if stale:
        print("docs/reference differs from what the program says; BOUGH=PROGRAM python3 tests/docs/reference.py . writes it again")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes the blocking client from the asynchronous one, so that there is one source.

`python tools/make_sync.py` writes `src/boughdb/_sync`; with `--check` it fails when that is not what the source gives.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "boughdb"
HEADER = "# Made from ../_async/{name} by tools/make_sync.py; change it there.\n"

# In this order: an earlier rule may make what a later one would match.
RULES: list[tuple[str, str]] = [
    (r"AsyncGenerator\[(\S+), None\]", r"Generator[\1, None, None]"),
    (r"httpx\.AsyncBaseTransport", "httpx.BaseTransport"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\banext\(", "next("),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\ba(closing|close|read|iter_bytes)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"_runtime_async", "_runtime_sync"),
]


def to_sync(text: str) -> str:
    """Returns the blocking form of a module."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def made() -> dict[Path, str]:
    """Returns what each file of the blocking client must say."""
    return {
        PACKAGE / "_sync" / source.name: HEADER.format(name=source.name) + to_sync(source.read_text())
        for source in sorted((PACKAGE / "_async").glob("[!_]*.py"))
    }


def main() -> int:
    wrong = 0
    for target, text in made().items():
        if target.exists() and target.read_text() == text:
            continue
        wrong += 1
        if "--check" in sys.argv:
            print(f"{target} is not what its source gives; run tools/make_sync.py", file=sys.stderr)
        else:
            target.write_text(text)
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())

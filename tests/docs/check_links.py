"""Checks the built site: every link and picture leads to a file, every anchor to an element, and every page of docs/ is in it.

    check_links.py SITE DOCS

Links to other sites are not followed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# mdBook's own page for addresses that do not exist: a server shows it anywhere, so that its links begin at the root.
NOT_A_PAGE = {"404.html"}


class Page(HTMLParser):
    """The links of a page, and what can be linked to in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


def problems(site: Path, docs: Path) -> Iterator[str]:
    pages = {file: Page(file) for file in sorted(site.rglob("*.html")) if file.name not in NOT_A_PAGE}
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                yield f"{file.relative_to(site)}: {link} leads to no file"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{file.relative_to(site)}: {link} leads to no anchor"
    for source in sorted(docs.rglob("*.md")):
        built = site / source.relative_to(docs).with_suffix(".html")
        if built not in pages and source.name != "SUMMARY.md":
            yield f"docs/{source.relative_to(docs)} is in no chapter: list it in docs/SUMMARY.md, or a decision in docs/decisions/README.md"


def main() -> int:
    site, docs = (Path(argument).resolve() for argument in sys.argv[1:3])
    began = time.monotonic()
    found = list(problems(site, docs))
    print("\n".join(found), end="\n" if found else "")
    # In the form that `cargo xtask test` counts.
    print(f"{0 if found else 1} passed, {len(found)} failed in {time.monotonic() - began:.1f}s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""A preprocessor of mdBook: each decision that docs/decisions/README.md lists becomes a chapter below it.

So a decision is listed in one place. mdBook starts this program, see https://rust-lang.github.io/mdBook/for_developers/preprocessors.html
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

LIST = "decisions/README.md"


def decision(folder: Path, name: str, number: str, title: str, parents: list[str]) -> dict[str, Any]:
    path = f"decisions/{name}"
    content = (folder / path).read_text()
    chapter = {"name": f"{number} {title}", "content": content, "number": None, "sub_items": []}
    return {"Chapter": {**chapter, "path": path, "source_path": path, "parent_names": parents}}


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    folder = Path(context["root"], context["config"]["book"]["src"])
    for item in book["items"]:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter["source_path"] == LIST:
            listed = re.findall(r"^- \[(\d+)\]\((\S+?\.md)\) (.+)$", chapter["content"], re.M)
            parents = [*chapter["parent_names"], chapter["name"]]
            in_order = sorted((number, name, title) for number, name, title in listed)
            chapter["sub_items"] = [decision(folder, name, number, title, parents) for number, name, title in in_order]
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()

"""Finding checkpoints by their threads and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from .._operations import Call, Operation
from .._requests import path
from .._types import Entry
from ._documents import CHECKPOINT, Decoder, document_of
from ._ids import checkpoint_of, prefix_of
from ._messages import Serde
from ._shorthand import long_metadata
from ._threads import PREFIX, THREAD, Threads, configurable

_PAGE = 500


@dataclass(frozen=True)
class Listed:
    """A checkpoint that a list found."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    entry_id: str
    document: dict[str, Any]
    metadata: dict[str, Any]


def listed(
    threads: Threads,
    config: RunnableConfig | None,
    wanted: dict[str, Any] | None,
    before: str | None,
    limit: int | None,
    serde: Serde,
) -> Operation[Sequence[Listed]]:
    """The checkpoints of a thread, or of all, that have this metadata, the newest first."""
    named: dict[str, Any] = configurable(config) if config else {}
    thread_ids = [str(named["thread_id"])] if "thread_id" in named else (yield from all_threads(threads))
    found: list[Listed] = []
    for thread_id in thread_ids:
        found += yield from checkpoints(threads, thread_id, named.get("checkpoint_ns"), serde)
    only = named.get("checkpoint_id")
    chosen = [
        one
        for one in found
        if (only is None or one.checkpoint_id == only)
        and (before is None or one.checkpoint_id < before)
        and all(one.metadata.get(name) == value for name, value in (wanted or {}).items())
    ]
    chosen.sort(key=lambda one: one.checkpoint_id, reverse=True)
    return chosen[:limit]


def checkpoints(threads: Threads, thread_id: str, namespace: str | None, serde: Serde) -> Operation[list[Listed]]:
    """The checkpoints of a thread, in one namespace or in all. One that was stored again counts once."""
    prefix = prefix_of(namespace) if namespace is not None else None
    entries = yield from threads.entries(thread_id, custom_type=CHECKPOINT, id_prefix=prefix, order="oldest")
    newest: dict[tuple[str, str], Listed] = {}
    for entry in entries:
        one = _listed(thread_id, entry, serde)
        newest[one.namespace, one.checkpoint_id] = one
    return list(newest.values())


def all_threads(threads: Threads) -> Operation[list[str]]:
    """The threads of a saver's prefix."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = {"metadata": {PREFIX: threads.prefix}, "archived": "include", "limit": _PAGE, "cursor": cursor}
        page = yield Call("GET", path("sessions"), params)
        found += [meta["metadata"][THREAD] for meta in page["sessions"]]
        cursor = page.get("next_cursor")
        if cursor is None:
            return found


def _listed(thread_id: str, entry: Entry, serde: Serde) -> Listed:
    document = document_of(entry)
    metadata = Decoder(serde, {}).decode(long_metadata(document["md"]))
    return Listed(thread_id, document.get("ns", ""), checkpoint_of(entry["entry_id"]), entry["entry_id"], document, metadata)

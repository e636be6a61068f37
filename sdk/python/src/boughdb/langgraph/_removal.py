"""Deleting, pruning and copying threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import NotFound
from .._operations import Call, Operation
from .._requests import new_key, path
from .._types import Entry, NewEntry
from ._documents import CHECKPOINT, new_document, parent_of
from ._ids import new_id_of, prefix_of
from ._listing import Listed, all_threads, checkpoints
from ._messages import Serde
from ._threads import PREFIX, THREAD, Threads

# How many entries are copied at once, and hidden.
_COPIED_AT_ONCE = 1000
_HIDDEN_AT_ONCE = 1000


def delete_thread(threads: Threads, thread_id: str) -> Operation[None]:
    """Moves the session of a thread to the trash."""
    threads.forget(thread_id)
    try:
        yield Call("DELETE", path("sessions", threads.session_id(thread_id)))
    except NotFound:
        return


def copy_thread(threads: Threads, source: str, target: str) -> Operation[None]:
    """Copies every entry of a session, with its id and its place. What is there already is passed over."""
    threads.forget(target)
    entries = yield from threads.entries(source, order="oldest")
    batch: list[NewEntry] = []
    for number, entry in enumerate(entries, 1):
        batch.append(_copy_of(entry))
        if len(batch) == _COPIED_AT_ONCE or number == len(entries):
            named = {PREFIX: threads.prefix, THREAD: target}
            yield from _append(threads, target, batch, {"create": True, "meta": {"metadata": named}})
            batch = []


def _copy_of(entry: Entry) -> NewEntry:
    copy: NewEntry = {"entry_id": entry["entry_id"], "parent_id": entry.get("parent_id")}
    if "custom" in entry:
        copy["custom"] = entry["custom"]
    else:
        copy["message"] = entry.get("message", {})
    return copy


def prune(threads: Threads, thread_ids: Sequence[str], strategy: str, serde: Serde) -> Operation[None]:
    """Keeps the newest checkpoint of each namespace, or none."""
    for thread_id in map(str, thread_ids):
        if strategy == "delete":
            yield from delete_thread(threads, thread_id)
            continue
        found = yield from checkpoints(threads, thread_id, None, serde)
        kept = _newest(found)
        yield from _keep(threads, thread_id, found, kept)


def delete_for_runs(threads: Threads, run_ids: Sequence[str], serde: Serde) -> Operation[None]:
    """Removes the checkpoints of runs. Every thread is looked at: a run may have used several."""
    gone = set(run_ids)
    for thread_id in (yield from all_threads(threads)) if gone else []:
        found = yield from checkpoints(threads, thread_id, None, serde)
        kept = [one for one in found if one.metadata.get("run_id") not in gone]
        if len(kept) < len(found):
            yield from _keep(threads, thread_id, found, kept)


def _newest(found: list[Listed]) -> list[Listed]:
    """The newest checkpoint of each namespace, and those from which its delta channels are rebuilt."""
    kept: dict[str, Listed] = {}
    for one in found:
        before = kept.get(one.namespace)
        if before is None or before.checkpoint_id < one.checkpoint_id:
            kept[one.namespace] = one
    by_id = {(one.namespace, one.checkpoint_id): one for one in found}
    return [needed for newest in kept.values() for needed in _with_ancestors(newest, by_id)]


def _with_ancestors(newest: Listed, by_id: dict[tuple[str, str], Listed]) -> list[Listed]:
    """A checkpoint, and its ancestors back to where each of its delta channels has a snapshot."""
    needed = [newest]
    missing = set(newest.metadata.get("counters_since_delta_snapshot") or ()) - set(newest.document["c"])
    parent = by_id.get((newest.namespace, parent_of(newest.document) or ""))
    while missing and parent is not None:
        needed.append(parent)
        missing -= set(parent.document["c"])
        parent = by_id.get((parent.namespace, parent_of(parent.document) or ""))
    return needed


def _keep(threads: Threads, thread_id: str, found: list[Listed], kept: list[Listed]) -> Operation[None]:
    """Hides all checkpoints but these with their writes, after giving these the values that they have from removed ones."""
    ids = {(one.namespace, one.checkpoint_id) for one in kept}
    gone = [one for one in found if (one.namespace, one.checkpoint_id) not in ids]
    if not gone:
        return
    documents = {one.entry_id: one.document for one in found}
    removed = {one.entry_id for one in gone}
    hidden: list[str] = []
    for one in gone:
        prefix = prefix_of(one.namespace, one.checkpoint_id)
        entries = yield from threads.entries(thread_id, id_prefix=prefix, order="oldest")
        hidden.extend(entry["entry_id"] for entry in entries)
    batch: list[NewEntry] = []
    for one in kept:
        channels = {
            name: documents[stored["@"]]["c"][name] if stored.get("@") in removed else stored
            for name, stored in one.document["c"].items()
        }
        if channels != one.document["c"]:
            # At the place of the one that it replaces, so that it holds the same messages.
            batch.append(_new(one, {**one.document, "c": channels}))
    threads.forget(thread_id)
    if batch:
        yield from _append(threads, thread_id, batch, {})
    place = path("sessions", threads.session_id(thread_id), "entries", "hide")
    for first in range(0, len(hidden), _HIDDEN_AT_ONCE):
        yield Call("POST", place, body={"entry_ids": hidden[first : first + _HIDDEN_AT_ONCE]})


def _new(one: Listed, document: dict[str, Any]) -> NewEntry:
    return new_document(new_id_of(one.namespace, one.checkpoint_id), CHECKPOINT, document, one.entry_id)


def _append(threads: Threads, thread_id: str, batch: list[NewEntry], more: dict[str, Any]) -> Operation[None]:
    place = path("sessions", threads.session_id(thread_id), "entries", "batch")
    yield Call("POST", place, None, {"entries": batch, **more}, new_key())

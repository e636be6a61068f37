"""Taking over threads from another checkpointer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from ._saver import BoughSaver
from ._threads import NewWrites, configurable

# Told after each checkpoint: how many were looked at, and how many there are.
Progress = Callable[[int, int], None]


def import_threads(
    source: BaseCheckpointSaver[Any],
    target: BoughSaver,
    thread_ids: Iterable[str] | None = None,
    *,
    progress: Progress | None = None,
) -> int:
    """Copies threads with their whole history, such as those of LangGraph's savers in SQLite or PostgreSQL.

        with SqliteSaver.from_conn_string("checkpoints.sqlite") as source:
            import_threads(source, BoughSaver("http://127.0.0.1:7717"))

    Without `thread_ids`, all of them. A checkpoint is stored with its writes or not at all, and those that the target has
    already are left as they are, so that a copy that was interrupted can be done again. `progress` is called with the number of
    checkpoints that were looked at and of all. Returns how many checkpoints were copied.
    """
    configs: list[RunnableConfig | None] = [None]
    if thread_ids is not None:
        configs = [{"configurable": {"thread_id": thread_id}} for thread_id in thread_ids]
    found = [checkpoint.config for config in configs for checkpoint in source.list(config)]
    # Thread by thread, and a parent before its children: ids of checkpoints grow with time.
    found.sort(key=lambda config: (configurable(config)["thread_id"], configurable(config)["checkpoint_id"]))
    copied = 0
    thread_id: str | None = None
    known: set[tuple[str, str]] = set()
    for number, config in enumerate(found, 1):
        named = configurable(config)
        if named["thread_id"] != thread_id:
            thread_id = named["thread_id"]
            known = target.stored_checkpoints(named["thread_id"])
        if (named.get("checkpoint_ns", ""), named["checkpoint_id"]) not in known:
            checkpoint = source.get_tuple(config)
            if checkpoint is not None:
                _copy(checkpoint, target)
                copied += 1
        if progress is not None:
            progress(number, len(found))
    return copied


def _copy(checkpoint: CheckpointTuple, target: BoughSaver) -> None:
    named = configurable(checkpoint.config)
    thread_id, namespace = named["thread_id"], named.get("checkpoint_ns", "")
    of_tasks: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in checkpoint.pending_writes or []:
        of_tasks.setdefault(task_id, []).append((channel, value))
    # The place of a task among the others is not told, only the order of the writes: it is kept.
    writes = [
        NewWrites(named["checkpoint_id"], task_id, f"~imported, {number:08}", written)
        for number, (task_id, written) in enumerate(of_tasks.items())
    ]
    place: RunnableConfig = checkpoint.parent_config or {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
    target.put_whole(place, checkpoint.checkpoint, checkpoint.metadata, writes)

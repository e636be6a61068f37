"""Taking over threads from another checkpointer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from ._saver import BoughSaver
from ._threads import configurable


def import_threads(source: BaseCheckpointSaver[Any], target: BoughSaver, thread_ids: Iterable[str] | None = None) -> int:
    """Copies threads with their whole history, such as those of LangGraph's savers in SQLite or PostgreSQL.

        with SqliteSaver.from_conn_string("checkpoints.sqlite") as source:
            import_threads(source, BoughSaver("http://127.0.0.1:7717"))

    Without `thread_ids`, all of them. Checkpoints that the target has already are left as they are, so that a copy that was
    interrupted can be done again. Returns how many checkpoints were copied.
    """
    configs: list[RunnableConfig | None] = [None]
    if thread_ids is not None:
        configs = [{"configurable": {"thread_id": thread_id}} for thread_id in thread_ids]
    found = [checkpoint.config for config in configs for checkpoint in source.list(config)]
    # A parent comes before its children: ids of checkpoints grow with time.
    found.sort(key=lambda config: configurable(config)["checkpoint_id"])
    copied = 0
    for config in found:
        checkpoint = source.get_tuple(config)
        if checkpoint is not None and target.get_tuple(config) is None:
            _copy(checkpoint, target)
            copied += 1
    return copied


def _copy(checkpoint: CheckpointTuple, target: BoughSaver) -> None:
    named = configurable(checkpoint.config)
    place: RunnableConfig = checkpoint.parent_config or {
        "configurable": {"thread_id": named["thread_id"], "checkpoint_ns": named.get("checkpoint_ns", "")}
    }
    stored = target.put(place, checkpoint.checkpoint, checkpoint.metadata, {})
    writes: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in checkpoint.pending_writes or []:
        writes.setdefault(task_id, []).append((channel, value))
    for number, (task_id, of_task) in enumerate(writes.items()):
        # The place of a task among the others is not told, only the order of the writes: it is kept.
        target.put_writes(stored, of_task, task_id, task_path=f"~imported, {number:08}")

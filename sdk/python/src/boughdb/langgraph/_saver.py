"""The checkpointer."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import anyio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._adapters import Clients, UrlOrClient
from .._operations import Operation, run, run_async
from ._listing import Listed, checkpoints, listed
from ._removal import copy_thread, delete_for_runs, delete_thread, prune
from ._threads import NewWrites, Threads, config_of, configurable
from ._writing import NewCheckpoint, Writer


class BoughSaver(BaseCheckpointSaver[int]):
    """Keeps the checkpoints of LangGraph in Bough, with the messages as a conversation.

    A thread is the session `prefix` + thread id. With the usual serializer, messages and JSON are stored readably; with any
    other one, such as `EncryptedSerializer`, everything is stored as it writes it, and there is no conversation to read.

    Blocking and asynchronous methods work on the same threads, from any number of processes.
    """

    def __init__(self, url_or_client: UrlOrClient = None, *, prefix: str = "", serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._clients = Clients(url_or_client)
        self._threads = Threads(prefix)
        self._lock = threading.Lock()
        self._async_lock = anyio.Lock()

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that the configuration names, or the newest one of its thread."""
        return self._read(self._get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The asynchronous form of `get_tuple`."""
        return await self._aread(self._get_tuple(config))

    def _get_tuple(self, config: RunnableConfig) -> Operation[CheckpointTuple | None]:
        thread_id, namespace = _place(config)
        named = get_checkpoint_id(config)
        checkpoint_id = named or (yield from self._threads.latest_id(thread_id, namespace))
        if checkpoint_id is None:
            return None
        found = yield from self._tuple(thread_id, namespace, checkpoint_id)
        if found is None and named is None:
            # The newest one was removed.
            left = yield from listed(self._threads, config, None, None, 1, self.serde)
            found = (yield from self._tuple(thread_id, namespace, left[0].checkpoint_id)) if left else None
        return found

    def _tuple(self, thread_id: str, namespace: str, checkpoint_id: str) -> Operation[CheckpointTuple | None]:
        found = yield from self._threads.read(thread_id, namespace, checkpoint_id, self.serde)
        if found is None:
            return None
        return (yield from self._threads.tuple_of(thread_id, namespace, checkpoint_id, found, self.serde))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Returns checkpoints, the newest first."""
        for one in self._read(self._listed(config, filter, before, limit)):
            found = self._read(self._tuple(one.thread_id, one.namespace, one.checkpoint_id))
            if found is not None:
                yield found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The asynchronous form of `list`."""
        for one in await self._aread(self._listed(config, filter, before, limit)):
            found = await self._aread(self._tuple(one.thread_id, one.namespace, one.checkpoint_id))
            if found is not None:
                yield found

    def stored_checkpoints(self, thread_id: str) -> set[tuple[str, str]]:
        """The namespace and the id of every checkpoint of a thread, without their values."""
        found = self._read(checkpoints(self._threads, thread_id, None, self.serde))
        return {(one.namespace, one.checkpoint_id) for one in found}

    def _listed(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Operation[Sequence[Listed]]:
        return listed(self._threads, config, filter, get_checkpoint_id(before) if before else None, limit, self.serde)

    # Writing.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint below the one that the configuration names."""
        return self._write(self._put(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The asynchronous form of `put`."""
        return await self._awrite(self._put(config, checkpoint, metadata, new_versions))

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Operation[RunnableConfig]:
        thread_id, namespace = _place(config)
        said = cast("dict[str, Any]", get_serializable_checkpoint_metadata(config, metadata))
        new = NewCheckpoint(get_checkpoint_id(config), checkpoint, said, new_versions)
        yield from Writer(self._threads, thread_id, namespace, self.serde).put(new)
        return config_of(thread_id, namespace, checkpoint["id"])

    def put_whole(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, writes: Sequence[NewWrites]
    ) -> None:
        """Stores a checkpoint and the writes of its tasks in one commit."""
        thread_id, namespace = _place(config)
        for new in writes:
            self._threads.keep_early(thread_id, namespace, new)
        self.put(config, checkpoint, metadata, {})

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Stores the writes of a task."""
        self._write(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The asynchronous form of `put_writes`."""
        await self._awrite(self._put_writes(config, writes, task_id, task_path))

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Operation[None]:
        thread_id, namespace = _place(config)
        new = NewWrites(configurable(config)["checkpoint_id"], task_id, task_path, list(writes))
        yield from Writer(self._threads, thread_id, namespace, self.serde).put_writes(new)

    # Removing and copying.

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread. It is in the trash of the server for a while."""
        self._write(delete_thread(self._threads, str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """The asynchronous form of `delete_thread`."""
        await self._awrite(delete_thread(self._threads, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints and writes of these runs. Their bytes stay in the log."""
        self._write(delete_for_runs(self._threads, run_ids, self.serde))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """The asynchronous form of `delete_for_runs`."""
        await self._awrite(delete_for_runs(self._threads, run_ids, self.serde))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a whole thread."""
        self._write(copy_thread(self._threads, str(source_thread_id), str(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The asynchronous form of `copy_thread`."""
        await self._awrite(copy_thread(self._threads, str(source_thread_id), str(target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes all but the newest checkpoint of each namespace, or with `"delete"` deletes the threads."""
        self._write(prune(self._threads, thread_ids, strategy, self.serde))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """The asynchronous form of `prune`."""
        await self._awrite(prune(self._threads, thread_ids, strategy, self.serde))

    def get_next_version(self, current: int | None, channel: None) -> int:
        """Returns the version after this one. Threads that another saver began go on with the texts that it used."""
        if isinstance(current, str):
            number = int(cast("str", current).split(".")[0]) + 1
            return cast("int", f"{number:032}.{random.random():016}")
        return 1 if current is None else current + 1

    # Writes of one saver follow each other: an entry must be there before one is appended below it.

    def _read(self, operation: Operation[Any]) -> Any:
        return run(operation, self._clients.blocking)

    async def _aread(self, operation: Operation[Any]) -> Any:
        return await run_async(operation, self._clients.asynchronous)

    def _write(self, operation: Operation[Any]) -> Any:
        with self._lock:
            return run(operation, self._clients.blocking)

    async def _awrite(self, operation: Operation[Any]) -> Any:
        async with self._async_lock:
            return await run_async(operation, self._clients.asynchronous)


def _place(config: RunnableConfig) -> tuple[str, str]:
    named = configurable(config)
    return str(named["thread_id"]), named.get("checkpoint_ns", "")

/** The checkpointer. */

import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";

import { clientOf, type UrlOrClient } from "../adapters.js";
import type { Json } from "../types.js";
import { CHECKPOINT, checkpointOf, Decoder, prefixOf } from "./documents.js";
import { longMetadata } from "./shorthand.js";
import { checkpointIn, Threads } from "./threads.js";
import { Writer } from "./writing.js";

/** Checkpoints before this version have the pending sends of their parent as a channel. */
const WITHOUT_PENDING_SENDS = 4;

export interface SaverOptions {
  /** A thread is the session `prefix` + thread id. */
  prefix?: string;
  /** Another serializer than the usual one: everything is stored as it writes it, and there is no conversation to read. */
  serde?: SerializerProtocol;
}

/** A checkpoint that a list found. */
interface Listed {
  threadId: string;
  namespace: string;
  checkpointId: string;
  metadata: Json;
}

/**
 * Keeps the checkpoints of LangGraph in Bough, with the messages as a conversation.
 *
 * Any number of processes may use a thread, also those of the Python package: messages and JSON are stored alike.
 */
export class BoughSaver extends BaseCheckpointSaver {
  readonly #threads: Threads;
  readonly #isReadable: boolean;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(urlOrClient?: UrlOrClient, options: SaverOptions = {}) {
    super(options.serde);
    this.#threads = new Threads(clientOf(urlOrClient), options.prefix ?? "", this.serde);
    this.#isReadable = options.serde === undefined;
  }

  /** Returns the checkpoint that the configuration names, or the newest one of its thread. */
  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id: threadId, checkpoint_ns: namespace = "" } = config.configurable ?? {};
    if (threadId === undefined) return undefined;
    const named = getCheckpointId(config);
    if (named !== "") return this.#tuple(threadId, namespace, named);
    const latest = await this.#threads.latestId(threadId, namespace);
    const found = latest === undefined ? undefined : await this.#tuple(threadId, namespace, latest);
    if (found !== undefined || latest === undefined) return found;
    // The newest one was removed.
    for await (const tuple of this.list({ configurable: { thread_id: threadId, checkpoint_ns: namespace } }, { limit: 1 })) return tuple;
    return undefined;
  }

  /** Returns checkpoints, the newest first. */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id: threadId, checkpoint_ns: namespace } = config.configurable ?? {};
    const only = getCheckpointId(config);
    const before = options.before === undefined ? "" : getCheckpointId(options.before);
    const threadIds: string[] = threadId === undefined ? await this.#threads.all() : [threadId];
    const found: Listed[] = [];
    for (const id of threadIds) found.push(...(await this.#checkpoints(id, namespace)));
    const chosen = found.filter(
      (one) =>
        (only === "" || one.checkpointId === only) &&
        (before === "" || one.checkpointId < before) &&
        Object.entries(options.filter ?? {}).every(([name, value]) => one.metadata[name] === value),
    );
    chosen.sort((one, other) => (one.checkpointId < other.checkpointId ? 1 : -1));
    for (const one of chosen.slice(0, options.limit)) {
      const tuple = await this.#tuple(one.threadId, one.namespace, one.checkpointId);
      if (tuple !== undefined) yield tuple;
    }
  }

  /** Stores a checkpoint below the one that the configuration names. */
  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, namespace } = placeOf(config);
    const parentId = getCheckpointId(config) || undefined;
    const said = Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined));
    await this.#write(() => this.#writer(threadId, namespace).put({ parentId, checkpoint, metadata: said, newVersions }));
    return { configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpoint.id } };
  }

  /** Stores the writes of a task. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, namespace } = placeOf(config);
    const checkpointId = getCheckpointId(config);
    if (checkpointId === "") throw new Error('putWrites needs "checkpoint_id" in the configurable part of the configuration');
    await this.#write(() => this.#writer(threadId, namespace).putWrites({ checkpointId, taskId, writes }));
  }

  /** Deletes a thread. It is in the trash of the server for a while. */
  async deleteThread(threadId: string): Promise<void> {
    await this.#write(async () => {
      this.#threads.forget(threadId);
      await this.#threads.session(threadId).delete();
    });
  }

  /** Returns the version after this one. Threads that another saver began go on with the texts that it used. */
  override getNextVersion(current: number | undefined): number {
    const given: unknown = current;
    if (typeof given !== "string") return super.getNextVersion(current);
    const next = String(Number.parseInt(given, 10) + 1).padStart(32, "0");
    return `${next}.${Math.random().toFixed(14).padStart(16, "0")}` as unknown as number;
  }

  #writer(threadId: string, namespace: string): Writer {
    return new Writer(this.#threads, threadId, namespace, this.serde, this.#isReadable);
  }

  /** Writes of one saver follow each other: an entry must be there before one is appended below it. */
  #write<T>(write: () => Promise<T>): Promise<T> {
    const done = this.#lastWrite.then(write);
    // A write that failed must not stop those behind it; whoever asked for it hears of it.
    this.#lastWrite = done.catch(() => undefined);
    return done;
  }

  async #tuple(threadId: string, namespace: string, checkpointId: string): Promise<CheckpointTuple | undefined> {
    const found = await this.#threads.read(threadId, namespace, checkpointId);
    if (found === undefined) return undefined;
    const tuple = await this.#threads.tupleOf(threadId, namespace, checkpointId, found);
    const parentId = tuple.parentConfig?.configurable?.["checkpoint_id"] as string | undefined;
    if (tuple.checkpoint.v < WITHOUT_PENDING_SENDS && parentId !== undefined) await this.#addPendingSends(tuple.checkpoint, threadId, namespace, parentId);
    return tuple;
  }

  /** Gives a checkpoint of an old version what the tasks of its parent sent. */
  async #addPendingSends(checkpoint: Checkpoint, threadId: string, namespace: string, parentId: string): Promise<void> {
    const parent = await this.#threads.read(threadId, namespace, parentId);
    if (parent === undefined) return;
    const { pendingWrites = [] } = await this.#threads.tupleOf(threadId, namespace, parentId, parent);
    checkpoint.channel_values[TASKS] = pendingWrites.filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  /** The checkpoints of a thread, in one namespace or in all. One that was stored again counts once. */
  async #checkpoints(threadId: string, namespace: string | undefined): Promise<Listed[]> {
    const wanted = { order: "oldest" as const, ...(namespace !== undefined && { idPrefix: prefixOf(namespace) }) };
    const entries = await this.#threads.entries(threadId, { ...wanted, customType: CHECKPOINT });
    const decoder = new Decoder(this.serde);
    const newest = new Map<string, Listed>();
    for (const entry of entries) {
      const document = checkpointIn(entry);
      const checkpointId = checkpointOf(entry.entry_id);
      const metadata = (await decoder.decode(longMetadata(document.md))) as Json;
      newest.set(`${document.ns ?? ""}|${checkpointId}`, { threadId, namespace: document.ns ?? "", checkpointId, metadata });
    }
    return [...newest.values()];
  }
}

function placeOf(config: RunnableConfig): { threadId: string; namespace: string } {
  const { thread_id: threadId, checkpoint_ns: namespace = "" } = config.configurable ?? {};
  if (threadId === undefined) throw new Error('a checkpoint needs "thread_id" in the configurable part of the configuration');
  return { threadId: String(threadId), namespace };
}

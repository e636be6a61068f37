/** Storing checkpoints and the writes of tasks. */

import type { BaseMessage } from "@langchain/core/messages";
import type { ChannelVersions, Checkpoint, PendingWrite, SerializerProtocol } from "@langchain/langgraph-checkpoint";

import { InvalidRequest } from "../errors.js";
import type { Json, NewEntry } from "../types.js";
import {
  CHECKPOINT,
  type Channels,
  type CheckpointDocument,
  checkpointMembers,
  Encoder,
  newIdOf,
  referTo,
  shortId,
  type Stored,
  WRITES,
  type WritesDocument,
} from "./documents.js";
import { type Given, Line } from "./line.js";
import { isReadable, toEntry } from "./messages.js";
import { shortCheckpoint, shortMembers, shortMetadata, shortSeen, shortWrites } from "./shorthand.js";
import { type Known, type Namespace, PREFIX, THREAD, type Threads } from "./threads.js";

/** A checkpoint to store, below the one that `parentId` names. */
export interface NewCheckpoint {
  parentId: string | undefined;
  checkpoint: Checkpoint;
  metadata: Json;
  newVersions: ChannelVersions;
}

/** What a task wrote, for the checkpoint at which it ran. */
export interface NewWrites {
  checkpointId: string;
  taskId: string;
  writes: PendingWrite[];
}

/** Writes to one namespace of a thread. */
export class Writer {
  readonly #threads: Threads;
  readonly #threadId: string;
  readonly #namespace: string;
  readonly #serde: SerializerProtocol;
  readonly #isReadable: boolean;

  constructor(threads: Threads, threadId: string, namespace: string, serde: SerializerProtocol, isReadable: boolean) {
    this.#threads = threads;
    this.#threadId = threadId;
    this.#namespace = namespace;
    this.#serde = serde;
    this.#isReadable = isReadable;
  }

  /** Stores a checkpoint. */
  put(fresh: NewCheckpoint): Promise<void> {
    return this.#again(() => this.#put(fresh));
  }

  /** Stores the writes of a task. */
  putWrites(fresh: NewWrites): Promise<void> {
    return this.#again(() => this.#putWrites(fresh));
  }

  /** Does a write; when what is remembered of the thread is wrong, forgets it and does the write once more. */
  async #again(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#threads.forget(this.#threadId);
      if (!(error instanceof InvalidRequest) || error.code !== "session/parent_not_found") throw error;
      await write();
    }
  }

  async #put(fresh: NewCheckpoint): Promise<void> {
    const { checkpoint, parentId } = fresh;
    const parent = parentId === undefined ? undefined : await this.#known(parentId);
    const line = parent?.line.copy() ?? new Line();
    const channel = this.#messageChannel(checkpoint.channel_values, parent);
    const batch = line.hold(channel === undefined ? [] : await this.#given(checkpoint.channel_values[channel] as BaseMessage[]));
    const ids = line.idsToSay();
    const place = line.tail;
    const entryId = newIdOf(this.#namespace, checkpoint.id);
    line.tail = entryId;
    const encoder = new Encoder(line, this.#serde, this.#isReadable);
    const document: CheckpointDocument = {
      ...(parentId !== undefined && { p: shortId(parentId) }),
      ...(this.#namespace !== "" && { ns: this.#namespace }),
      ...(line.ahead > 0 && { a: line.ahead }),
      ...(Object.keys(ids).length > 0 && { ids }),
      cv: checkpoint.channel_versions,
      vs: shortSeen(checkpoint.versions_seen),
      c: await this.#channels(fresh, channel, parent, encoder),
      x: shortMembers(await encoder.encode(checkpointMembers(checkpoint))),
      md: shortMetadata(await encoder.encode(fresh.metadata)),
    };
    await this.#append([...batch, custom(entryId, CHECKPOINT, shortCheckpoint(document), place), ...encoder.ahead], parent === undefined);
    const kept = JSON.parse(JSON.stringify(document)) as CheckpointDocument;
    this.#remembered.remember(checkpoint.id, { entryId, document: kept, line });
  }

  async #channels(fresh: NewCheckpoint, messages: string | undefined, parent: Known | undefined, encoder: Encoder): Promise<Channels> {
    const channels: Channels = {};
    for (const [name, value] of Object.entries(fresh.checkpoint.channel_values)) {
      const stored = name === messages ? { n: (value as unknown[]).length } : await this.#channel(name, value, fresh, parent, encoder);
      if (stored !== undefined) channels[name] = stored;
    }
    return channels;
  }

  /** How a value is stored. A first checkpoint holds only what is new with it. */
  async #channel(name: string, value: unknown, fresh: NewCheckpoint, parent: Known | undefined, encoder: Encoder): Promise<Stored | undefined> {
    if (!(name in fresh.newVersions)) {
      if (fresh.parentId === undefined) return undefined;
      const before = unchanged(name, fresh.checkpoint, parent);
      if (before !== undefined) return before;
    }
    return encoder.encode(value, name === "__start__");
  }

  async #putWrites({ checkpointId, taskId, writes }: NewWrites): Promise<void> {
    // The framework stores the writes of a step beside the checkpoint that follows it, which may come first. Then the messages of
    // the writes are on its line already, or never will be.
    const late = this.#remembered.newestBelow(checkpointId);
    const known = late ?? (await this.#known(checkpointId)) ?? this.#remembered.newest;
    const line = known?.line.copy() ?? new Line();
    const conversation = late === undefined ? conversationOf(known) : undefined;
    const place = line.tail;
    const entryId = newIdOf(this.#namespace, checkpointId);
    line.tail = entryId;
    const encoder = new Encoder(line, this.#serde, this.#isReadable);
    const document: WritesDocument = { t: shortId(taskId), w: [] };
    for (const [name, value] of writes) document.w.push([name, await encoder.encode(value, name === conversation)]);
    await this.#append([custom(entryId, WRITES, shortWrites(document), place), ...encoder.ahead], known === undefined);
    if (known !== undefined) known.line = line;
  }

  get #remembered(): Namespace {
    return this.#threads.namespace(this.#threadId, this.#namespace);
  }

  /** A checkpoint, from memory or from the server. */
  async #known(checkpointId: string): Promise<Known | undefined> {
    const remembered = this.#remembered.known.get(checkpointId);
    return remembered ?? (await this.#threads.read(this.#threadId, this.#namespace, checkpointId))?.known;
  }

  async #append(entries: NewEntry[], isNew: boolean): Promise<void> {
    const metadata = { [PREFIX]: this.#threads.prefix, [THREAD]: this.#threadId };
    await this.#threads.session(this.#threadId).appendMany(entries, { create: true, ...(isNew && { meta: { metadata } }) });
  }

  #given(messages: BaseMessage[]): Promise<Given[]> {
    return Promise.all(messages.map(async (message) => ({ message: await toEntry(message, this.#serde), id: message.id ?? null })));
  }

  /** The channel whose messages are the conversation: the one of before, `messages`, or the first that has some. */
  #messageChannel(values: Json, parent: Known | undefined): string | undefined {
    if (!this.#isReadable) return undefined;
    return [conversationOf(parent), ...Object.keys(values)].find((name) => {
      const value = values[name];
      return Array.isArray(value) && value.length > 0 && value.every(isReadable);
    });
  }
}

/** The channel whose messages were the conversation, `messages` when there was none. */
function conversationOf(known: Known | undefined): string {
  return Object.entries(known?.document.c ?? {}).find(([, stored]) => stored.n !== undefined)?.[0] ?? "messages";
}

/** How a checkpoint stores a value that its parent has in the same version; `undefined` when it has not. */
function unchanged(channel: string, checkpoint: Checkpoint, parent: Known | undefined): Stored | undefined {
  if (parent === undefined || parent.document.cv[channel] !== checkpoint.channel_versions[channel]) return undefined;
  const stored = parent.document.c[channel];
  return stored && referTo(stored, parent.entryId);
}

function custom(entryId: string, customType: string, data: unknown, parentId: string | null): NewEntry {
  return { entry_id: entryId, custom: { custom_type: customType, data }, parent_id: parentId };
}

/** What is read of threads, and what is remembered of them. */

import type { RunnableConfig } from "@langchain/core/runnables";
import type { Checkpoint, CheckpointMetadata, CheckpointTuple, SerializerProtocol } from "@langchain/langgraph-checkpoint";

import { collect, orWhenMissing } from "../adapters.js";
import type { Bough } from "../client.js";
import type { EntriesOptions, Session } from "../session.js";
import type { Entry, EntryPage } from "../types.js";
import {
  CHECKPOINT,
  type Channels,
  type CheckpointDocument,
  checkpointOf,
  Decoder,
  foldWrites,
  messageCount,
  messagesIn,
  parentOf,
  prefixOf,
  type Stored,
  WRITES,
  type WritesDocument,
} from "./documents.js";
import { type Item, itemsOf, Line, type Read } from "./line.js";
import { fromEntry, storedId, type StoredMessage } from "./messages.js";
import { longCheckpoint, longMembers, longMetadata, longSeen, longWrites } from "./shorthand.js";

/** What a session says of itself in its metadata, so that threads can be listed. */
export const PREFIX = "langgraph";
export const THREAD = "langgraph_thread";

/** How many entries are asked for at once, by page and by id. */
const PAGE = 500;
const IDS_AT_ONCE = 100;
/** How many of the newest checkpoints are looked at for the one with the highest id. */
const NEWEST = 4;
/** How many messages are read at once of a line whose beginning is known. */
const SHORT_PAGE = 16;
/** How many namespaces, and checkpoints of each, a saver remembers. */
const NAMESPACES_MAX = 256;
const CHECKPOINTS_MAX = 8;

const NO_ENTRIES: EntryPage = { entries: [] };

/** A checkpoint that this process wrote or read. */
export interface Known {
  entryId: string;
  document: CheckpointDocument;
  line: Line;
}

/** A checkpoint that was read, and the documents of its writes. */
export interface Found {
  known: Known;
  writes: WritesDocument[];
}

/** What is remembered of a namespace of a thread. */
export class Namespace {
  readonly known = new Map<string, Known>();

  remember(checkpointId: string, known: Known): void {
    putLast(this.known, checkpointId, known, CHECKPOINTS_MAX);
  }

  /** The checkpoint that was stored last. */
  get newest(): Known | undefined {
    return [...this.known.values()].at(-1);
  }

  /** The checkpoint that was stored last of those below this one. */
  newestBelow(checkpointId: string): Known | undefined {
    const below = new Set([checkpointId]);
    let found: Known | undefined;
    for (const [id, known] of this.known) {
      const parent = parentOf(known.document);
      if (parent === undefined || !below.has(parent)) continue;
      below.add(id);
      found = known;
    }
    return found;
  }
}

/** The threads of a saver. What it remembers of them saves requests; all of it can be read again. */
export class Threads {
  readonly prefix: string;
  readonly bough: Bough;
  readonly #serde: SerializerProtocol;
  readonly #remembered = new Map<string, Namespace>();

  constructor(bough: Bough, prefix: string, serde: SerializerProtocol) {
    this.bough = bough;
    this.prefix = prefix;
    this.#serde = serde;
  }

  /** The session of a thread. */
  session(threadId: string): Session {
    return this.bough.session(this.prefix + threadId);
  }

  /** What is remembered of a namespace. */
  namespace(threadId: string, namespace: string): Namespace {
    const key = JSON.stringify([threadId, namespace]);
    const found = this.#remembered.get(key) ?? new Namespace();
    putLast(this.#remembered, key, found, NAMESPACES_MAX);
    return found;
  }

  /** Forgets a thread that was deleted or changed elsewhere. */
  forget(threadId: string): void {
    for (const key of this.#remembered.keys()) {
      if ((JSON.parse(key) as [string, string])[0] === threadId) this.#remembered.delete(key);
    }
  }

  /** All entries with these keys, or the first `limit`; none when there is no such thread. */
  async entries(threadId: string, options: EntriesOptions): Promise<Entry[]> {
    const found: Entry[] = [];
    let cursor: string | undefined;
    do {
      const wanted = { limit: PAGE, ...options, ...(cursor !== undefined && { cursor }) };
      const page = await orWhenMissing(this.session(threadId).entries(wanted), NO_ENTRIES);
      found.push(...page.entries);
      cursor = options.limit === undefined ? page.next_cursor : undefined;
    } while (cursor !== undefined);
    return found;
  }

  /** The newest checkpoint of a namespace. */
  async latestId(threadId: string, namespace: string): Promise<string | undefined> {
    const wanted: EntriesOptions = { customType: CHECKPOINT, idPrefix: prefixOf(namespace), order: "newest", limit: NEWEST };
    const newest = await this.entries(threadId, wanted);
    return newest.map((entry) => checkpointOf(entry.entry_id)).sort().at(-1);
  }

  /** One checkpoint with its writes. */
  async read(threadId: string, namespace: string, checkpointId: string): Promise<Found | undefined> {
    const entries = await this.entries(threadId, { idPrefix: prefixOf(namespace, checkpointId), order: "oldest" });
    const entry = ofType(entries, CHECKPOINT).at(-1);
    if (entry === undefined) return undefined;
    const known = await this.#known(threadId, namespace, entry);
    return { known, writes: ofType(entries, WRITES).map((one) => longWrites(dataOf<WritesDocument>(one))) };
  }

  async #known(threadId: string, namespace: string, entry: Entry): Promise<Known> {
    const remembered = this.namespace(threadId, namespace);
    const checkpointId = checkpointOf(entry.entry_id);
    const known = remembered.known.get(checkpointId);
    if (known?.entryId === entry.entry_id) return known;
    const line = await this.#line(threadId, entry, remembered.newest?.line ?? new Line());
    const read = { entryId: entry.entry_id, document: checkpointIn(entry), line };
    remembered.remember(checkpointId, read);
    return read;
  }

  /** Reads the messages on the line to a checkpoint, newest first, until one is known. */
  async #line(threadId: string, entry: Entry, beginning: Line): Promise<Line> {
    const document = checkpointIn(entry);
    const held = messageCount(document);
    const wanted = held + (document.a ?? 0);
    const places = new Map(beginning.items.map((item, index) => [item.entryId, index]));
    const read: Read[] = [];
    let before: Item[] = [];
    if (wanted > 0) {
      const pageSize = places.size > 0 ? SHORT_PAGE : PAGE;
      const newest = this.session(threadId).messages({ fromEntryId: entry.entry_id, order: "newest", pageSize });
      for await (const item of newest) {
        const place = places.get(item.entry_id);
        if (place !== undefined && place + 1 + read.length === wanted) {
          before = beginning.items.slice(0, place + 1);
          break;
        }
        const message = item.message as StoredMessage;
        read.push({ entryId: item.entry_id, parentId: item.parent_id ?? null, message, storedId: await storedId(message, this.#serde) });
        if (read.length === wanted) break;
      }
    }
    return new Line(entry.entry_id, itemsOf(before, read.reverse(), document.ids ?? {}), held);
  }

  /** A checkpoint as the framework wants it. */
  async tupleOf(threadId: string, namespace: string, checkpointId: string, found: Found): Promise<CheckpointTuple> {
    const { document, line } = found.known;
    const channels = await this.#channels(threadId, document);
    const written = found.writes.flatMap(({ w }) => w.map(([, stored]) => stored));
    const decoder = await this.#decoder(threadId, line, [...Object.values(channels), ...written]);
    const values = Object.entries(channels).map(async ([name, stored]) => [name, await this.#value(stored, line, decoder)] as const);
    const parent = parentOf(document);
    return {
      config: configOf(threadId, namespace, checkpointId),
      checkpoint: {
        ...((await decoder.decode(longMembers(document.x))) as Checkpoint),
        id: checkpointId,
        channel_values: Object.fromEntries(await Promise.all(values)),
        channel_versions: structuredClone(document.cv),
        versions_seen: longSeen(document.vs),
      },
      metadata: (await decoder.decode(longMetadata(document.md))) as CheckpointMetadata,
      ...(parent !== undefined && { parentConfig: configOf(threadId, namespace, parent) }),
      pendingWrites: await foldWrites(found.writes, decoder),
    };
  }

  async #value(stored: Stored, line: Line, decoder: Decoder): Promise<unknown> {
    if (stored.n === undefined) return decoder.decode(stored);
    return Promise.all(line.items.slice(0, line.held).map((item) => fromEntry(item.message, this.#serde, item.id)));
  }

  /** The stored values of a checkpoint, with those that it has from earlier ones. */
  async #channels(threadId: string, document: CheckpointDocument): Promise<Channels> {
    const elsewhere = new Set(Object.values(document.c).flatMap((stored) => stored["@"] ?? []));
    const documents = new Map<string, CheckpointDocument>();
    for (const entry of await this.#byId(threadId, elsewhere)) documents.set(entry.entry_id, checkpointIn(entry));
    const channels = Object.entries(document.c).map(([name, stored]): [string, Stored] => {
      if (stored["@"] === undefined) return [name, stored];
      const value = documents.get(stored["@"])?.c[name];
      if (value === undefined) throw new Error(`thread ${JSON.stringify(threadId)} lacks the entry ${stored["@"]}, to which a checkpoint refers`);
      return [name, value];
    });
    return Object.fromEntries(channels);
  }

  /** A decoder that has every message to which the values refer. */
  async #decoder(threadId: string, line: Line, stored: Stored[]): Promise<Decoder> {
    const wanted = new Set(stored.flatMap(messagesIn));
    const messages = new Map<string, StoredMessage>();
    for (const item of line.items) {
      if (wanted.delete(item.entryId)) messages.set(item.entryId, item.message);
    }
    for (const entry of await this.#byId(threadId, wanted)) messages.set(entry.entry_id, entry.message as StoredMessage);
    return new Decoder(this.#serde, messages);
  }

  async #byId(threadId: string, ids: Set<string>): Promise<Entry[]> {
    const ordered = [...ids].sort();
    const found: Entry[] = [];
    for (let start = 0; start < ordered.length; start += IDS_AT_ONCE) {
      found.push(...(await this.entries(threadId, { ids: ordered.slice(start, start + IDS_AT_ONCE) })));
    }
    return found;
  }

  /** The threads of the saver's prefix. */
  async all(): Promise<string[]> {
    const metas = await collect(this.bough.list({ metadata: { [PREFIX]: this.prefix }, archived: "include", pageSize: PAGE }));
    return metas.map((meta) => String(meta.metadata?.[THREAD]));
  }
}

/** The configuration that names a checkpoint. */
export function configOf(threadId: string, namespace: string, checkpointId: string): RunnableConfig {
  return { configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpointId } };
}

/** The custom entries of one type. */
function ofType(entries: Entry[], customType: string): Entry[] {
  return entries.filter((entry) => entry.custom?.custom_type === customType);
}

/** The document of a checkpoint. */
export function checkpointIn(entry: Entry): CheckpointDocument {
  return longCheckpoint(dataOf<CheckpointDocument>(entry));
}

/** The document of a custom entry. */
function dataOf<T>(entry: Entry): T {
  return entry.custom?.data as T;
}

/** Sets a member of a map as its newest one, and drops the oldest ones above a bound. */
function putLast<K, V>(map: Map<K, V>, key: K, value: V, bound: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= bound) return;
    map.delete(oldest);
  }
}

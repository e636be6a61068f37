/** How checkpoints and writes are written as custom entries. */

import { createHash } from "node:crypto";

import { type Checkpoint, type CheckpointPendingWrite, type SerializerProtocol, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";

import { isPlainObject } from "../canonical.js";
import type { Json, NewEntry } from "../types.js";
import { type Ids, type Line, newEntryId } from "./line.js";
import { fromEntry, isReadable, type StoredMessage, toEntry } from "./messages.js";
import type { Short, ShortSeen } from "./shorthand.js";
import { fromOpaque, isPlainJson, opaque, type Opaque } from "./values.js";

export const CHECKPOINT = "langgraph.checkpoint";
export const WRITES = "langgraph.writes";

/** A value that is at most so long is repeated by each checkpoint; a longer one is referred to. */
const REPEATED_MAX = 64;
/** How many characters tell entries of one checkpoint apart. */
const SUFFIX = 6;
/** Members of a checkpoint that have a place of their own in its document. */
const OWN = new Set(["id", "channel_values", "channel_versions", "versions_seen"]);

/**
 * A stored value, one of: JSON (`j`), what the serializer wrote (`t`, `b`), a list (`l`), an object (`d`), a message by its entry
 * (`m`, with the id `i` where it has another one), the messages of the line (`n` of them), the value of another checkpoint (`@`).
 */
export interface Stored extends Partial<Opaque> {
  j?: unknown;
  l?: Stored[];
  d?: { [name: string]: Stored };
  m?: string;
  i?: string | null;
  n?: number;
  "@"?: string;
}

export type Channels = { [name: string]: Stored };

/** What a checkpoint says. */
export interface CheckpointDocument {
  /** The checkpoint below which it was stored. */
  p?: string;
  ns?: string;
  /** How many messages on its line are ahead of it. */
  a?: number;
  ids?: Ids;
  cv: Checkpoint["channel_versions"];
  vs: ShortSeen;
  c: Channels;
  x: Short;
  md: Short;
}

/** What a task wrote. */
export interface WritesDocument {
  t: string;
  p?: string;
  w: [string, Stored][];
}

/** An id as entries write it, again and again: a UUID in 22 characters, and any other text behind a mark. */
export function shortId(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return `=${text}`;
  return Buffer.from(text.replaceAll("-", ""), "hex").toString("base64url");
}

/** The id that `shortId` was given. */
export function longId(short: string): string {
  if (short.startsWith("=")) return short.slice(1);
  const hex = Buffer.from(short, "base64url").toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** How the ids of a namespace's entries begin, or those of one checkpoint and its writes. */
export function prefixOf(namespace: string, checkpointId?: string): string {
  const key = namespace === "" ? "-" : createHash("sha256").update(namespace).digest("hex").slice(0, 12);
  return checkpointId === undefined ? `${key}|` : `${key}|${shortId(checkpointId)}|`;
}

/** A new entry of a checkpoint: itself, or writes for it. */
export function newIdOf(namespace: string, checkpointId: string): string {
  return prefixOf(namespace, checkpointId) + newEntryId().slice(0, SUFFIX);
}

/** The checkpoint that an entry belongs to, by its id. */
export function checkpointOf(entryId: string): string {
  return longId(entryId.slice(entryId.indexOf("|") + 1, -SUFFIX - 1));
}

/** The checkpoint below which a checkpoint was stored. */
export function parentOf(document: CheckpointDocument): string | undefined {
  return document.p === undefined ? undefined : longId(document.p);
}

/** How many messages a checkpoint holds. */
export function messageCount(document: CheckpointDocument): number {
  return Object.values(document.c).find((stored) => stored.n !== undefined)?.n ?? 0;
}

/** How a later checkpoint stores a value of this one: by reference, or again where it is short. */
export function referTo(stored: Stored, entryId: string): Stored | undefined {
  if (stored.n !== undefined) return undefined;
  return stored["@"] !== undefined || JSON.stringify(stored).length <= REPEATED_MAX ? stored : { "@": entryId };
}

/** What a checkpoint says beside its values and versions, such as its time. */
export function checkpointMembers(checkpoint: Checkpoint): Json {
  const said = Object.entries(checkpoint).filter(([name]) => !OWN.has(name));
  return Object.fromEntries(said.filter(([, value]) => value != null && !(Array.isArray(value) && value.length === 0)));
}

/** Turns values into JSON. Messages that are on the line, or may go there, are referred to. */
export class Encoder {
  /** Entries to append behind the document. */
  readonly ahead: NewEntry[] = [];
  readonly #line: Line;
  readonly #serde: SerializerProtocol;
  readonly #isReadable: boolean;

  constructor(line: Line, serde: SerializerProtocol, isReadable: boolean) {
    this.#line = line;
    this.#serde = serde;
    this.#isReadable = isReadable;
  }

  /** A value. `goesOnLine` says that its messages are expected in the messages channel. */
  async encode(value: unknown, goesOnLine = false): Promise<Stored> {
    if (this.#isReadable) {
      if (isPlainJson(value)) return { j: value };
      if (Array.isArray(value) && value.some(isReadable)) return { l: await this.#each(value, goesOnLine) };
      if (isOfMessages(value)) {
        const stored = await this.#each(Object.values(value), goesOnLine);
        return { d: Object.fromEntries(Object.keys(value).map((name, index) => [name, stored[index] ?? {}])) };
      }
      const reference = isReadable(value) ? await this.#refer(value, goesOnLine) : undefined;
      if (reference !== undefined) return reference;
    }
    return { ...(await opaque(value, this.#serde)) };
  }

  /** Values one after the other: each may put messages on the line. */
  async #each(values: unknown[], goesOnLine: boolean): Promise<Stored[]> {
    const stored: Stored[] = [];
    for (const value of values) stored.push(await this.encode(value, goesOnLine));
    return stored;
  }

  async #refer(value: Parameters<typeof toEntry>[0], goesOnLine: boolean): Promise<Stored | undefined> {
    const given = { message: await toEntry(value, this.#serde), id: value.id ?? null };
    let item = this.#line.find(given);
    if (item === undefined && goesOnLine) {
      this.ahead.push(this.#line.add(given));
      item = this.#line.items.at(-1);
    }
    if (item === undefined) return undefined;
    return given.id === item.storedId ? { m: item.entryId } : { m: item.entryId, i: given.id };
  }
}

/** Whether a value is like the state of a graph: a message or a list with messages is among its values. */
function isOfMessages(value: unknown): value is Json {
  if (!isPlainObject(value)) return false;
  return Object.values(value).some((member) => isReadable(member) || (Array.isArray(member) && member.some(isReadable)));
}

/** Turns JSON into values again. `messages` has the stored message of each entry that is referred to. */
export class Decoder {
  readonly #serde: SerializerProtocol;
  readonly #messages: ReadonlyMap<string, StoredMessage>;

  constructor(serde: SerializerProtocol, messages: ReadonlyMap<string, StoredMessage> = new Map()) {
    this.#serde = serde;
    this.#messages = messages;
  }

  async decode(stored: Stored): Promise<unknown> {
    // The framework changes what it gets.
    if ("j" in stored) return structuredClone(stored.j);
    if (stored.t !== undefined && stored.b !== undefined) return fromOpaque({ t: stored.t, b: stored.b }, this.#serde);
    if (stored.l !== undefined) return Promise.all(stored.l.map((item) => this.decode(item)));
    if (stored.d !== undefined) {
      const members = Object.entries(stored.d).map(async ([name, item]) => [name, await this.decode(item)] as const);
      return Object.fromEntries(await Promise.all(members));
    }
    const message = this.#messages.get(stored.m ?? "");
    if (message === undefined) throw new Error(`the thread lacks the message ${JSON.stringify(stored.m)}, to which a checkpoint refers`);
    return fromEntry(message, this.#serde, stored.i);
  }
}

/** The entries of the messages that a stored value refers to. */
export function messagesIn(stored: Stored): string[] {
  const below = [...(stored.l ?? []), ...Object.values(stored.d ?? {})];
  return [...(stored.m === undefined ? [] : [stored.m]), ...below.flatMap(messagesIn)];
}

/**
 * The pending writes of a checkpoint, from the documents of its tasks in the order in which they were stored. A task that writes
 * again changes nothing, but for special writes such as an error, which are replaced.
 */
export async function foldWrites(documents: WritesDocument[], decoder: Decoder): Promise<CheckpointPendingWrite[]> {
  const found = new Map<string, { path: string; task: string; index: number; channel: string; stored: Stored }>();
  for (const { t, p: path = "", w } of documents) {
    const isSpecial = w.every(([channel]) => channel in WRITES_IDX_MAP);
    for (const [place, [channel, stored]] of w.entries()) {
      const index = WRITES_IDX_MAP[channel] ?? place;
      const key = `${index} ${t}`;
      if (isSpecial || !found.has(key)) found.set(key, { path, task: longId(t), index, channel, stored });
    }
  }
  const ordered = [...found.values()].sort((one, other) => compare(one.path, other.path) || compare(one.task, other.task) || one.index - other.index);
  return Promise.all(ordered.map(async ({ task, channel, stored }): Promise<CheckpointPendingWrite> => [task, channel, await decoder.decode(stored)]));
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/**
 * The line of entries that leads to a checkpoint.
 *
 * A session is a tree. The entries of one run follow each other on a line: messages, checkpoints, and the writes of tasks. The
 * messages channel of a checkpoint is not stored with it: it is the messages on the line up to it. So a message is stored once,
 * however many checkpoints hold it.
 *
 * A message is often seen before it is in the channel, as input or as a write of a task. It is put on the line then, ahead of
 * the checkpoint that will hold it, and the input or write refers to it. The framework may store what a step writes before the
 * checkpoint at which the step began: that checkpoint says how many messages on its line are ahead of it. Should the channel turn
 * out otherwise, the next checkpoint branches off before the first message that differs.
 */

import type { NewEntry } from "../types.js";
import { saidBy, type StoredMessage } from "./messages.js";

/** How far back from the end of a line a message is looked for. */
const LOOK_BACK = 32;

/** The ids of messages, by their entries. */
export type Ids = { [entryId: string]: string | null };

/** A message that a program gave, as it will be stored. */
export interface Given {
  message: StoredMessage;
  id: string | null;
}

/**
 * A message on a line. `id` is the id that the channel holds it with. It may have been given after the message was stored with
 * `storedId`; then a later message, `carriedBy`, says it, or the checkpoint where there is none yet.
 */
export interface Item {
  readonly entryId: string;
  readonly parentId: string | null;
  readonly message: StoredMessage;
  readonly said: string;
  readonly storedId: string | null;
  readonly id: string | null;
  readonly carriedBy?: string;
}

/** What is known of the entries that lead to a checkpoint, and of those behind it that wait for the next one. */
export class Line {
  tail: string | null;
  readonly items: Item[];
  /** How many of the messages the checkpoint holds; the others are ahead of it. */
  held: number;

  constructor(tail: string | null = null, items: Item[] = [], held = 0) {
    this.tail = tail;
    this.items = items;
    this.held = held;
  }

  /** How many messages wait for a later checkpoint. */
  get ahead(): number {
    return this.items.length - this.held;
  }

  /** Another line that begins the same. */
  copy(): Line {
    return new Line(this.tail, [...this.items], this.held);
  }

  /** Makes the line hold exactly these messages; returns the entries to append. Others that were ahead stay ahead. */
  hold(messages: Given[]): NewEntry[] {
    const kept = this.#match(messages);
    const differs = this.items[kept];
    if (differs !== undefined && kept < Math.max(messages.length, this.held)) {
      this.tail = differs.parentId;
      this.items.length = kept;
    }
    const batch = messages.slice(kept).map((given) => this.add(given));
    this.held = messages.length;
    return batch;
  }

  /** Puts a message at the end; returns the entry to append for it. */
  add(given: Given): NewEntry {
    const entryId = newEntryId();
    const ids = this.idsToSay();
    this.items.forEach((item, index) => {
      if (item.entryId in ids) this.items[index] = { ...item, carriedBy: entryId };
    });
    const parentId = this.tail;
    const message = Object.keys(ids).length === 0 ? given.message : { ...given.message, langchain: { ...given.message.langchain, ids } };
    this.items.push({ entryId, parentId, message, said: saidBy(message), storedId: given.id, id: given.id });
    this.tail = entryId;
    return { entry_id: entryId, message, parent_id: parentId };
  }

  /** The ids that no message on the line says: the entry that is appended next has to. */
  idsToSay(): Ids {
    const onLine = new Set(this.items.map((item) => item.entryId));
    const unsaid = this.items.filter((item) => item.id !== item.storedId && !(item.carriedBy !== undefined && onLine.has(item.carriedBy)));
    return Object.fromEntries(unsaid.map((item) => [item.entryId, item.id]));
  }

  /** The message among the newest ones of the line, whatever its id. */
  find(given: Given): Item | undefined {
    const said = saidBy(given.message);
    return this.items.slice(-LOOK_BACK).reverse().find((item) => item.said === said);
  }

  /** How many messages of the line can stay, from its beginning. */
  #match(messages: Given[]): number {
    for (const [index, given] of messages.entries()) {
      const item = this.items[index];
      if (item === undefined || item.said !== saidBy(given.message)) return index;
      if (item.id === given.id) continue;
      if (index < this.held) return index;
      // It was ahead of its checkpoint, which gave it an id.
      this.items[index] = { ...item, id: given.id };
    }
    return messages.length;
  }
}

/** A message of a line as it was read. */
export type Read = Pick<Item, "entryId" | "parentId" | "message" | "storedId">;

/**
 * The items of a line: those that are known from its beginning, and what was read behind them, oldest first. `ids` are what the
 * checkpoint at the end of the line says.
 */
export function itemsOf(before: readonly Item[], read: readonly Read[], ids: Ids): Item[] {
  const said = new Map<string, Pick<Item, "id" | "carriedBy">>(Object.entries(ids).map(([entryId, id]) => [entryId, { id }]));
  for (const { entryId, message } of read) {
    for (const [other, id] of Object.entries((message.langchain["ids"] ?? {}) as Ids)) said.set(other, { id, carriedBy: entryId });
  }
  const items = [...before, ...read.map((one): Item => ({ ...one, said: saidBy(one.message), id: one.storedId }))];
  return items.map((item) => ({ ...item, ...said.get(item.entryId) }));
}

/** Draws a short id: each entry of a session repeats it, and there may be thousands. */
export function newEntryId(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(9))).toString("base64url");
}

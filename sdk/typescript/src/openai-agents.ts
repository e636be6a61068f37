/**
 * Sessions of the OpenAI Agents SDK.
 *
 * ```ts
 * import { Agent, run } from "@openai/agents";
 * import { BoughSession } from "boughdb/openai-agents";
 *
 * const session = new BoughSession("user-1", "http://127.0.0.1:7717");
 * await run(agent, "Will it rain?", { session });
 * ```
 *
 * Items of the run are messages of a session of the same id: they are read, branched and watched as those of any other. They
 * are stored in the form of the Responses API, so the Python SDK reads them too.
 */

import type { AgentInputItem, SessionHistoryMutation, SessionHistoryRewriteArgs, SessionHistoryRewriteAwareSession } from "@openai/agents-core";

import { clientOf, collect, orWhenMissing, type UrlOrClient } from "./adapters.js";
import { InvalidRequest, LeafConflict } from "./errors.js";
import { fromItem, toItem } from "./openai-items.js";
import type { Session } from "./session.js";
import type { Entry, Json, NewEntry } from "./types.js";

export type { UrlOrClient } from "./adapters.js";

const FORMAT = "openai-responses";
const OPAQUE = "openai-agents.item";
/** How many items are asked for at once. */
const PAGE_MAX = 500;

/**
 * A session of the OpenAI Agents SDK that is kept by Bough.
 *
 * Several programs may use one session at the same time: each item is popped once. Items that were popped or cleared leave the
 * active path; they stay in the tree of the session until it is deleted.
 */
export class BoughSession implements SessionHistoryRewriteAwareSession {
  readonly sessionId: string;
  readonly #session: Session;

  constructor(sessionId: string, urlOrClient?: UrlOrClient) {
    this.sessionId = sessionId;
    this.#session = clientOf(urlOrClient).session(sessionId);
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  /** Returns the items, or the newest ones, oldest first. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    return (await this.#newest(limit)).reverse().map(itemOf);
  }

  /** Appends items, all of them or none. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.#append(items);
  }

  /** Takes the newest item away and returns it. Of several callers at once, each gets another one. */
  async popItem(): Promise<AgentInputItem | undefined> {
    let refused: { entryId: string; leaf: string } | undefined;
    for (;;) {
      const [last] = await this.#newest(1);
      if (last === undefined) return undefined;
      // Behind the newest item there may be an entry that is none, such as a summary of the server.
      const expectedLeaf = refused?.entryId === last.entry_id ? refused.leaf : last.entry_id;
      const leaf = await leafUnlessMoved(this.#session.switchTo(last.parent_id ?? null, { expectedLeaf }));
      if (leaf === undefined) return itemOf(last);
      refused = { entryId: last.entry_id, leaf };
    }
  }

  /** Takes all items away. */
  async clearSession(): Promise<void> {
    await orWhenMissing(this.#session.switchTo(null), undefined);
  }

  /** Replaces function calls. What comes after the first change is stored again, on a branch that becomes the active one. */
  async applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void> {
    while (!(await this.#rewrite(args))) {
      // Somebody appended meanwhile: the change is made again, on top of that.
    }
  }

  async #rewrite(args: SessionHistoryRewriteArgs): Promise<boolean> {
    const leaf = (await orWhenMissing(this.#session.meta(), undefined))?.active_leaf ?? "";
    const entries = (await this.#newest()).reverse();
    const before = entries.map(itemOf);
    const after = args.mutations.reduce(replaceCall, before);
    const kept = commonLength(before, after);
    if (kept === before.length) return true;
    const place = kept === 0 ? null : (entries[kept - 1]?.entry_id ?? null);
    const rest = after.slice(kept);
    if (rest.length === 0 || place === null) {
      if ((await leafUnlessMoved(this.#session.switchTo(place, { expectedLeaf: leaf }))) !== undefined) return false;
      await this.addItems(rest);
      return true;
    }
    return (await leafUnlessMoved(this.#append(rest, { place, leaf }))) === undefined;
  }

  /** Appends items behind the active leaf, or behind `place` when the leaf still is `leaf`. */
  async #append(items: AgentInputItem[], at?: { place: string; leaf: string }): Promise<void> {
    const options = { create: true, ...(at && { expectedLeaf: at.leaf }) };
    const send = (toEntry: (item: AgentInputItem) => NewEntry): Promise<unknown> => {
      const [first, ...others] = items.map(toEntry);
      return this.#session.appendMany([{ ...first, ...(at && { parent_id: at.place }) }, ...others], options);
    };
    try {
      await send((item) => ({ message: fromItem(item), format: FORMAT }));
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      // The framework lets programs keep items that the API does not know.
      await send((item) => ({ custom: { custom_type: OPAQUE, data: fromItem(item) } }));
    }
  }

  /** The newest entries, the newest first. */
  #newest(limit?: number): Promise<Entry[]> {
    const pageSize = Math.max(1, Math.min(limit ?? PAGE_MAX, PAGE_MAX));
    const found = this.#session.messages({ format: FORMAT, includeCustom: true, order: "newest", pageSize });
    return orWhenMissing(collect(found, limit), []);
  }
}

function itemOf(entry: Entry): AgentInputItem {
  return toItem((entry.custom?.data ?? entry.message) as Json);
}

/** The items with the first function call of an id replaced, and without its others. */
function replaceCall(items: AgentInputItem[], { callId, replacement }: SessionHistoryMutation): AgentInputItem[] {
  const isCall = (item: AgentInputItem): boolean => item.type === "function_call" && item.callId === callId;
  const first = items.findIndex(isCall);
  return items.flatMap((item, index) => (index === first ? [replacement] : isCall(item) ? [] : [item]));
}

/** Where the active leaf is when something was not done because it moved; `undefined` when it was done. */
async function leafUnlessMoved(done: Promise<unknown>): Promise<string | undefined> {
  try {
    await done;
    return undefined;
  } catch (error) {
    if (error instanceof LeafConflict) return error.activeLeaf ?? "";
    throw error;
  }
}

/** How many items two lists have in common, from their beginning. */
function commonLength(one: AgentInputItem[], other: AgentInputItem[]): number {
  const differs = one.findIndex((item, index) => JSON.stringify(item) !== JSON.stringify(other[index]));
  return differs < 0 ? one.length : differs;
}

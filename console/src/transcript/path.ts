// Reading a path of a session by pages, from either end or from the middle.

import { getJson } from "../api/client";
import type { PathItem, PathPage } from "../api/types";
import { firstAddress, newestAddress, oldestAddress, type PageQuery } from "./addresses";

export interface Part {
  /** Oldest first. */
  items: PathItem[];
  hasOlder: boolean;
  hasNewer: boolean;
}

async function page(session: string, end: "oldest" | "newest", query: PageQuery, signal?: AbortSignal): Promise<PathPage> {
  const address = end === "oldest" ? oldestAddress(session, query) : newestAddress(session, query);
  return getJson<PathPage>(address, {}, signal);
}

/** The end of the active path. */
export async function activeEnd(session: string, signal?: AbortSignal): Promise<Part> {
  return endOf(await getJson<PathPage>(firstAddress(session), {}, signal));
}

export async function newest(session: string, leaf: string, signal?: AbortSignal): Promise<Part> {
  return endOf(await page(session, "newest", { leaf }, signal));
}

function endOf({ messages, next_cursor: next }: PathPage): Part {
  return { items: messages.reverse(), hasOlder: next !== undefined, hasNewer: false };
}

export async function oldest(session: string, leaf: string | undefined, signal?: AbortSignal): Promise<Part> {
  const found = await page(session, "oldest", { leaf }, signal);
  return { items: found.messages, hasOlder: false, hasNewer: found.next_cursor !== undefined };
}

/** Entries before one that is known. */
export async function olderThan(session: string, leaf: string | undefined, entry: string, signal?: AbortSignal): Promise<Part> {
  const found = await page(session, "newest", { leaf, after: entry }, signal);
  return { items: found.messages.reverse(), hasOlder: found.next_cursor !== undefined, hasNewer: true };
}

/** Entries after one that is known. */
export async function newerThan(session: string, leaf: string | undefined, entry: string, signal?: AbortSignal): Promise<Part> {
  const found = await page(session, "oldest", { leaf, after: entry }, signal);
  return { items: found.messages, hasOlder: true, hasNewer: found.next_cursor !== undefined };
}

/** An entry with what is around it. */
export async function around(session: string, leaf: string | undefined, entry: string, signal?: AbortSignal): Promise<Part> {
  const before = await olderThan(session, leaf, entry, signal);
  const last = before.items.at(-1);
  const after = last === undefined ? await oldest(session, leaf, signal) : await newerThan(session, leaf, last.entry_id, signal);
  return { items: [...before.items, ...after.items], hasOlder: before.hasOlder, hasNewer: after.hasNewer };
}

/** The whole path, up to a number of entries; for copying. */
export async function whole(session: string, leaf: string | undefined, most: number): Promise<Part> {
  const items: PathItem[] = [];
  let after: string | undefined;
  for (;;) {
    const found = await page(session, "oldest", { leaf, after, limit: 500 });
    items.push(...found.messages);
    after = found.messages.at(-1)?.entry_id;
    if (found.next_cursor === undefined || after === undefined || items.length >= most) {
      return { items, hasOlder: false, hasNewer: found.next_cursor !== undefined };
    }
  }
}

export interface HiddenPart {
  items: PathItem[];
  /** Whether there are more than these. */
  hasMore: boolean;
}

/** Entries that are shown of those that a compaction hides. */
const HIDDEN_ENTRIES_MAX = 500;

/** What a compaction hides: its path from the beginning to the entry that it keeps first, or to itself where it keeps none of them. */
export async function hiddenBy(session: string, compaction: string, firstKept: string | undefined, signal: AbortSignal): Promise<HiddenPart> {
  const found = await page(session, "oldest", { leaf: compaction, limit: HIDDEN_ENTRIES_MAX }, signal);
  const ends = found.messages.findIndex((item) => item.entry_id === firstKept || item.entry_id === compaction);
  return { items: ends < 0 ? found.messages : found.messages.slice(0, ends), hasMore: ends < 0 && found.next_cursor !== undefined };
}

// Reading a path of a session by pages, from either end or from the middle.

import { getJson, sessionPath } from "../api/client";
import type { PathItem, PathPage } from "../api/types";

export interface Part {
  /** Oldest first. */
  items: PathItem[];
  hasOlder: boolean;
  hasNewer: boolean;
}

const PAGE_ITEMS = 60;

/** The cursor of a page that goes on behind an entry, in either direction. */
function cursorAt(entry: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify({ id: entry }))));
}

interface PageQuery {
  leaf: string | undefined;
  after?: string | undefined;
  limit?: number;
}

async function page(session: string, end: "oldest" | "newest", query: PageQuery, signal?: AbortSignal): Promise<PathPage> {
  const parts = end === "oldest" ? ["messages"] : ["messages", "tail"];
  return getJson<PathPage>(
    sessionPath(session, ...parts),
    {
      limit: query.limit ?? PAGE_ITEMS,
      include_custom: true,
      from_entry_id: query.leaf,
      cursor: query.after === undefined ? undefined : cursorAt(query.after),
    },
    signal,
  );
}

export async function newest(session: string, leaf: string | undefined, signal?: AbortSignal): Promise<Part> {
  const found = await page(session, "newest", { leaf }, signal);
  return { items: found.messages.reverse(), hasOlder: found.next_cursor !== undefined, hasNewer: false };
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

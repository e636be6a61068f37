// What a transcript asks the server for.

import { address, sessionPath } from "../api/client";

const PAGE_ITEMS = 60;
/** A screen of entries is drawn sooner than a page of them; what is before it is read next. */
const FIRST_ITEMS = 20;

const EVENT_TYPES = [
  "session::message-added",
  "session::message-updated",
  "session::status-changed",
  "session::meta-updated",
  "session::leaf-moved",
  "session::deleted",
  "session::created",
];

export interface PageQuery {
  /** Where the path ends; the active one where it is not said. */
  leaf?: string | undefined;
  after?: string | undefined;
  limit?: number;
}

export function sessionFeedAddress(session: string): string {
  return address(sessionPath(session, "events"), { snapshot: true, types: EVENT_TYPES.join(",") });
}

/** The end of the active path, as it is shown first. */
export function firstAddress(session: string): string {
  return newestAddress(session, { limit: FIRST_ITEMS });
}

export function newestAddress(session: string, query: PageQuery): string {
  return pageAddress(session, ["messages", "tail"], query);
}

export function oldestAddress(session: string, query: PageQuery): string {
  return pageAddress(session, ["messages"], query);
}

function pageAddress(session: string, parts: string[], { leaf, after, limit = PAGE_ITEMS }: PageQuery): string {
  const cursor = after === undefined ? undefined : cursorAt(after);
  return address(sessionPath(session, ...parts), { limit, include_custom: true, from_entry_id: leaf, cursor });
}

/** The cursor of a page that goes on behind an entry, in either direction. */
function cursorAt(entry: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify({ id: entry }))));
}

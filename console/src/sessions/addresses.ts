// What the list asks the server for.

import { address, type Query } from "../api/client";
import type { SessionFilters } from "../router";

/** The first page is small, so that it is there at once; who scrolls on gets the largest that servers give. */
export const FIRST_PAGE_ROWS = 100;

const EVENT_TYPES = [
  "session::created",
  "session::message-added",
  "session::status-changed",
  "session::meta-updated",
  "session::archived",
  "session::deleted",
];

/** Whether words are looked for, so that rows show where they were found. */
export function isSearch(filters: SessionFilters): boolean {
  return filters.text.trim() !== "";
}

/** Whether the rows come from the search index: only it knows who wrote an entry and which tool was called. */
export function needsIndex(filters: SessionFilters): boolean {
  return [filters.text, filters.agent, filters.tool].some((text) => text.trim() !== "");
}

export function listFeedAddress(): string {
  // The first event of a snapshot says where the stream is, so that a list that is left can go on from there.
  return address("/v1/events", { snapshot: true, types: EVENT_TYPES.join(",") });
}

export function listAddress(filters: SessionFilters, more: Query = { limit: FIRST_PAGE_ROWS }): string {
  return address("/v1/sessions", {
    include_details: true,
    status: filters.status,
    metadata: metadataFilter(filters.metadata),
    archived: filters.archived ? "only" : "exclude",
    ...more,
  });
}

/** `key=value` as the filter that the API takes; a value that is JSON is taken as such. */
export function metadataFilter(text: string): string | undefined {
  const at = text.indexOf("=");
  if (at <= 0) {
    return undefined;
  }
  const value = text.slice(at + 1).trim();
  return JSON.stringify({ [text.slice(0, at).trim()]: asJson(value) });
}

/** Whether there is a text that names no value yet, so that it filters nothing. */
export function isMetadataUnfinished(text: string): boolean {
  return text.trim() !== "" && metadataFilter(text) === undefined;
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

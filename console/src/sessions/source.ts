// Where the rows of the list come from: the list of sessions, or a search.

import { getJson, type Query } from "../api/client";
import type { SearchHit, SearchPage, SessionDetails, SessionMeta, SessionPage } from "../api/types";
import type { SessionFilters } from "../router";
import { FIRST_PAGE_ROWS, isSearch, listAddress, metadataFilter, needsIndex } from "./addresses";

export interface Row {
  meta: SessionMeta;
  details?: SessionDetails;
  /** What a search found in it. */
  hit?: SearchHit;
}

export interface RowPage {
  rows: Row[];
  next: string | undefined;
  /** Whether the search has not read everything yet. */
  isBehind: boolean;
}

/** The most rows that servers give at once. */
export const PAGE_ROWS = 500;

export async function loadRows(filters: SessionFilters, cursor: string | undefined, signal: AbortSignal): Promise<RowPage> {
  const limit = cursor === undefined ? FIRST_PAGE_ROWS : PAGE_ROWS;
  return needsIndex(filters) ? search(filters, cursor, signal) : list(filters, { cursor, limit }, signal);
}

/** The most recently changed sessions, as many as one request gives. */
export async function loadNewestRows(filters: SessionFilters, signal: AbortSignal): Promise<Row[]> {
  return (await list(filters, { limit: PAGE_ROWS }, signal)).rows;
}

/** The row of one session, if the filters let it through. */
export async function loadRow(filters: SessionFilters, session: string, signal: AbortSignal): Promise<Row | undefined> {
  // Others may have ids that begin with this one.
  let cursor: string | undefined;
  do {
    const page = await list(filters, { id_prefix: session, limit: cursor === undefined ? 5 : PAGE_ROWS, cursor }, signal);
    const row = page.rows.find((found) => found.meta.session_id === session);
    if (row !== undefined) {
      return row;
    }
    cursor = page.next;
  } while (cursor !== undefined);
  return undefined;
}

async function list(filters: SessionFilters, more: Query, signal: AbortSignal): Promise<RowPage> {
  const page = await getJson<SessionPage>(listAddress(filters, more), {}, signal);
  const rows = page.sessions.map(({ details, ...meta }) => asRow(meta, details));
  // The list is in the order of the last change: behind the first session that is too old all are.
  const recent = rows.filter((row) => row.meta.updated_at >= oldestWanted(filters.since, Date.now()));
  return { rows: recent, next: recent.length < rows.length ? undefined : page.next_cursor, isBehind: false };
}

const HOUR_MS = 3_600_000;

/** `24h` and `7d` as the time from which on sessions are wanted. */
export function oldestWanted(since: string, now: number): number {
  const [, count, unit] = /^(\d+)([hd])$/.exec(since) ?? [];
  return count === undefined ? 0 : now - Number(count) * (unit === "d" ? 24 * HOUR_MS : HOUR_MS);
}

function asRow(meta: SessionMeta, details: SessionDetails | undefined): Row {
  return details === undefined ? { meta } : { meta, details };
}

/** One row a session: with its best hit where words are looked for, and as in the list otherwise. */
async function search(filters: SessionFilters, cursor: string | undefined, signal: AbortSignal): Promise<RowPage> {
  const rows = new Map<string, Row>();
  let next = cursor;
  let isBehind = false;
  // A page may hold only sessions that the filters leave out: what they let through may be far behind it.
  for (let limit = FIRST_PAGE_ROWS; ; limit = PAGE_ROWS) {
    const metadata = metadataFilter(filters.metadata);
    const query: Query = { query: searchText(filters), by_session: true, limit, cursor: next, metadata };
    const page = await getJson<SearchPage>("/v1/search", query, signal);
    for (const hit of page.hits.filter((found) => isWanted(filters, found))) {
      const id = hit.meta.session_id;
      rows.set(id, rows.get(id) ?? { ...asRow(hit.meta, hit.details), ...(isSearch(filters) && { hit }) });
    }
    isBehind ||= page.index?.is_complete === false;
    next = page.next_cursor;
    if (next === undefined || rows.size > 0) {
      break;
    }
  }
  const found = [...rows.values()];
  return { rows: isSearch(filters) ? found : found.sort((a, b) => b.meta.updated_at - a.meta.updated_at), next, isBehind };
}

/** What the search itself does not filter by. */
function isWanted(filters: SessionFilters, { meta, details }: SearchHit): boolean {
  return (filters.status === "" || meta.status === filters.status) && (details?.archived ?? false) === filters.archived;
}

/** The filters in the words of the search. The word that is being typed is looked for as the beginning of one. */
export function searchText(filters: SessionFilters): string {
  const parts = [asTyped(filters.text.trim())];
  const named = (name: string, value: string) => {
    if (value.trim() !== "") {
      parts.push(`${name}:"${value.trim().replaceAll('"', "")}"`);
    }
  };
  named("agent", filters.agent);
  named("tool", filters.tool);
  if (filters.since !== "") {
    parts.push(`after:${filters.since}`);
  }
  return parts.filter((part) => part !== "").join(" ");
}

function asTyped(text: string): string {
  const quotes = text.split('"').length - 1;
  if (quotes % 2 === 1) {
    return `${text}"`;
  }
  return /(^|\s)[\p{L}\p{N}_]+$/u.test(text) ? `${text}*` : text;
}

// Where the rows of the list come from: the list of sessions, or a search.

import { getJson, type Query } from "../api/client";
import type { SearchHit, SearchPage, SessionDetails, SessionMeta, SessionPage } from "../api/types";
import type { SessionFilters } from "../router";

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

/** The first page is small, so that it is there at once; who scrolls on gets the largest that servers give. */
const FIRST_PAGE_ROWS = 100;
export const PAGE_ROWS = 500;
/** Pages of hits that are read for one page of rows: many hits may be of one session. */
const SEARCH_PAGES_MAX = 4;

export function isSearch(filters: SessionFilters): boolean {
  return [filters.text, filters.agent, filters.tool, filters.since].some((text) => text.trim() !== "");
}

export async function loadRows(filters: SessionFilters, cursor: string | undefined, signal: AbortSignal): Promise<RowPage> {
  const limit = cursor === undefined ? FIRST_PAGE_ROWS : PAGE_ROWS;
  return isSearch(filters) ? search(filters, cursor, signal) : list(filters, { cursor, limit }, signal);
}

/** The most recently changed sessions, as many as one request gives. */
export async function loadNewestRows(filters: SessionFilters, signal: AbortSignal): Promise<Row[]> {
  return (await list(filters, { limit: PAGE_ROWS }, signal)).rows;
}

/** The row of one session, if the filters let it through. */
export async function loadRow(filters: SessionFilters, session: string, signal: AbortSignal): Promise<Row | undefined> {
  const page = await list(filters, { id_prefix: session, limit: 5 }, signal);
  return page.rows.find((row) => row.meta.session_id === session);
}

async function list(filters: SessionFilters, more: Query, signal: AbortSignal): Promise<RowPage> {
  const query: Query = {
    include_details: true,
    status: filters.status,
    metadata: metadataFilter(filters.metadata),
    archived: filters.archived ? "only" : "exclude",
    ...more,
  };
  const page = await getJson<SessionPage>("/v1/sessions", query, signal);
  return { rows: page.sessions.map(({ details, ...meta }) => asRow(meta, details)), next: page.next_cursor, isBehind: false };
}

function asRow(meta: SessionMeta, details: SessionDetails | undefined): Row {
  return details === undefined ? { meta } : { meta, details };
}

/** One row a session, with its best hit. */
async function search(filters: SessionFilters, cursor: string | undefined, signal: AbortSignal): Promise<RowPage> {
  const rows = new Map<string, Row>();
  let next = cursor;
  let isBehind = false;
  for (let pages = 0; pages < SEARCH_PAGES_MAX; pages += 1) {
    const query: Query = { query: searchText(filters), limit: FIRST_PAGE_ROWS, cursor: next, metadata: metadataFilter(filters.metadata) };
    const page = await getJson<SearchPage>("/v1/search", query, signal);
    for (const hit of page.hits) {
      const isAsked = filters.status === "" || hit.meta.status === filters.status;
      if (isAsked && !rows.has(hit.meta.session_id)) {
        rows.set(hit.meta.session_id, { meta: hit.meta, hit });
      }
    }
    isBehind ||= page.index?.is_complete === false;
    next = page.next_cursor;
    if (next === undefined || rows.size >= FIRST_PAGE_ROWS) {
      break;
    }
  }
  return { rows: [...rows.values()], next, isBehind };
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

/** `key=value` as the filter that the API takes; a value that is JSON is taken as such. */
export function metadataFilter(text: string): string | undefined {
  const at = text.indexOf("=");
  if (at <= 0) {
    return undefined;
  }
  const value = text.slice(at + 1).trim();
  return JSON.stringify({ [text.slice(0, at).trim()]: asJson(value) });
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

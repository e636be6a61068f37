// The list of sessions, kept current by the feed of all sessions.

import { EventStream, type ServerEvent } from "../api/events";
import { isAbort } from "../api/client";
import type { SessionFilters } from "../router";
import { Store } from "../ui/store";
import { listFeedAddress, needsIndex } from "./addresses";
import { loadNewestRows, loadRow, loadRows, PAGE_ROWS, type Row } from "./source";

export interface ListState {
  rows: Row[];
  isLoading: boolean;
  hasMore: boolean;
  /** Whether the search has not read everything yet. */
  isBehind: boolean;
  error: unknown;
}

/** Changes are gathered for this long before the rows are read again. */
const REFRESH_MS = 300;
const SEARCH_REFRESH_MS = 1_500;
/** With more changed sessions than this they are read together, from the head of the list. */
const SINGLE_READS_MAX = 20;

export class SessionList {
  readonly state = new Store<ListState>({ rows: [], isLoading: true, hasMore: false, isBehind: false, error: undefined });
  /** How far the list is scrolled and which row is chosen, known before the page is drawn: keys may come faster. */
  readonly place = { top: 0, selected: -1 };
  private stream: EventStream | undefined;
  /** The event behind which the stream goes on. */
  private lastEvent = "";
  private readonly changed = new Set<string>();
  /** Sessions that were put in their new places while a page is being read, which may still hold them at their old ones. */
  private readonly moved = new Set<string>();
  private next: string | undefined;
  private work = new AbortController();
  private refreshTimer = 0;
  private isReloading = false;
  private isPaging = false;

  constructor(private filters: SessionFilters) {}

  /** Follows the changes of all sessions, from where it stopped. */
  follow(): void {
    const handlers = {
      onFresh: () => void this.reload(),
      onEvent: (event: ServerEvent) => this.take(event),
      onRefused: (error: unknown) => this.fail(error),
    };
    this.stream = new EventStream(listFeedAddress(), handlers, this.lastEvent);
    if (this.changed.size > 0) {
      this.schedule();
    }
  }

  /** Gives the connection back. The rows stay, for a reader who returns. */
  rest(): void {
    const last = this.stream?.close() ?? "";
    // Rows that are being read are not there: they are read anew.
    this.lastEvent = this.isReloading ? "" : last;
    this.work.abort();
    this.work = new AbortController();
    this.isReloading = false;
    window.clearTimeout(this.refreshTimer);
    this.refreshTimer = 0;
  }

  /** Shows other sessions. The old rows stay until the new ones are there. */
  filter(filters: SessionFilters): void {
    this.filters = filters;
    this.place.top = 0;
    void this.reload();
  }

  async reload(): Promise<void> {
    this.work.abort();
    this.work = new AbortController();
    const { signal } = this.work;
    this.changed.clear();
    this.isReloading = true;
    this.state.update((state) => ({ ...state, isLoading: true }));
    try {
      const page = await loadRows(this.filters, undefined, signal);
      this.next = page.next;
      this.state.set({ rows: page.rows, isLoading: false, hasMore: page.next !== undefined, isBehind: page.isBehind, error: undefined });
    } catch (error) {
      this.fail(error);
    } finally {
      if (!signal.aborted) {
        this.isReloading = false;
      }
    }
    if (this.state.get().isBehind) {
      this.schedule();
    }
  }

  async loadMore(): Promise<void> {
    if (this.isReloading || this.isPaging || this.next === undefined) {
      return;
    }
    const { signal } = this.work;
    this.isPaging = true;
    this.moved.clear();
    try {
      const page = await loadRows(this.filters, this.next, signal);
      if (signal.aborted) {
        return;
      }
      this.next = page.next;
      this.state.update((state) => {
        const fresh = needsIndex(this.filters) ? unknownTo(state.rows, page.rows) : page.rows.filter((row) => !this.moved.has(row.meta.session_id));
        return { ...state, rows: [...state.rows, ...fresh], hasMore: page.next !== undefined };
      });
    } catch (error) {
      if (!isAbort(error)) {
        // The rows that are there stay; scrolling on asks again.
        this.state.update((state) => ({ ...state }));
      }
    } finally {
      this.isPaging = false;
    }
  }

  /** Takes a row away before the server says so. */
  remove(session: string): void {
    this.moved.add(session);
    this.state.update((state) => ({ ...state, rows: state.rows.filter((row) => row.meta.session_id !== session) }));
  }

  private take(event: ServerEvent): void {
    if (event.name === "gap") {
      void this.reload();
      return;
    }
    const session = sessionOf(event);
    if (session === undefined) {
      return;
    }
    if (event.name === "session::deleted") {
      this.changed.delete(session);
      this.remove(session);
      return;
    }
    this.changed.add(session);
    this.schedule();
  }

  private schedule(): void {
    if (this.refreshTimer === 0) {
      const pause = needsIndex(this.filters) ? SEARCH_REFRESH_MS : REFRESH_MS;
      this.refreshTimer = window.setTimeout(() => void this.refresh(), pause);
    }
  }

  /** Reads again what changed. A changed session is at the head of the list, unless only its archive mark changed. */
  private async refresh(): Promise<void> {
    this.refreshTimer = 0;
    if (this.isReloading) {
      // The rows that are being read may be older than the changes.
      this.schedule();
      return;
    }
    if (needsIndex(this.filters) || this.changed.size > PAGE_ROWS) {
      await this.reload();
      return;
    }
    const sessions = [...this.changed];
    this.changed.clear();
    const { signal } = this.work;
    try {
      const fresh = await this.read(sessions, signal);
      const { rows, left } = withRows(this.state.get().rows, sessions, fresh, this.next !== undefined);
      sessions.filter((session) => !left.has(session)).forEach((session) => this.moved.add(session));
      this.state.update((state) => ({ ...state, rows }));
    } catch (error) {
      sessions.forEach((session) => this.changed.add(session));
      if (!isAbort(error)) {
        this.schedule();
      }
    }
  }

  /** The rows of these sessions, without those that the filters hide. */
  private async read(sessions: string[], signal: AbortSignal): Promise<Row[]> {
    const wanted = new Set(sessions);
    const newest = sessions.length > SINGLE_READS_MAX ? await loadNewestRows(this.filters, signal) : [];
    const found: (Row | undefined)[] = newest.filter((row) => wanted.delete(row.meta.session_id));
    found.push(...(await Promise.all([...wanted].map((session) => loadRow(this.filters, session, signal)))));
    return found.filter((row) => row !== undefined);
  }

  private fail(error: unknown): void {
    if (!isAbort(error)) {
      this.state.update((state) => ({ ...state, isLoading: false, error }));
    }
  }
}

/** Pages of a search may hold sessions that stand in the list already. */
function unknownTo(rows: Row[], page: Row[]): Row[] {
  const known = new Set(rows.map((row) => row.meta.session_id));
  return page.filter((row) => !known.has(row.meta.session_id));
}

/** The rows with the changed ones in their new places, the most recently changed first, and what was left to later pages. */
export function withRows(rows: Row[], changed: string[], fresh: Row[], hasMore: boolean): { rows: Row[]; left: ReadonlySet<string> } {
  const gone = new Set(changed);
  const kept = rows.filter((row) => !gone.has(row.meta.session_id));
  const oldest = kept.at(-1)?.meta.updated_at ?? 0;
  const left = new Set<string>();
  for (const row of fresh) {
    if (hasMore && row.meta.updated_at < oldest) {
      left.add(row.meta.session_id);
      continue;
    }
    // Changed rows stand near the head, and the others are in order: sorting all of them would cost more.
    const at = kept.findIndex((other) => other.meta.updated_at <= row.meta.updated_at);
    kept.splice(at < 0 ? kept.length : at, 0, row);
  }
  return { rows: kept, left };
}

function sessionOf(event: ServerEvent): string | undefined {
  try {
    const data = JSON.parse(event.data) as { payload?: { session_id?: unknown } };
    const session = data.payload?.session_id;
    return typeof session === "string" ? session : undefined;
  } catch {
    return undefined;
  }
}

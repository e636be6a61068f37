// The loops of a session, what they said, and the sessions that they spawned, kept current.

import { ApiError, address, getJson, isAbort, sessionPath } from "../api/client";
import { EventStream, type ServerEvent } from "../api/events";
import { readSession } from "../api/session";
import type { LoopEntry, LoopEntryPage, LoopSummary, LoopsPage, SpawnsAnswer } from "../api/loops";
import type { SessionDetails, SessionMeta } from "../api/types";
import { sessionTitle } from "../ui/format";
import { Store } from "../ui/store";

export interface LoopsState {
  meta: SessionMeta | undefined;
  details: SessionDetails | undefined;
  activeLeaf: string | undefined;
  loops: LoopSummary[] | undefined;
  /** In the order in which they were said. */
  entries: LoopEntry[];
  spawns: SpawnsAnswer | undefined;
  /** What the sessions of the family are called. */
  titles: ReadonlyMap<string, string>;
  /** Whether there is more than what is shown. */
  isCut: boolean;
  error: unknown;
}

const EVENT_TYPES = ["session::loop-changed", "session::message-added", "session::status-changed", "session::meta-updated", "session::created"];
const PAGE = 200;
const LOOPS_MAX = 1_000;
const ENTRIES_MAX = 4_000;
const TITLES_MAX = 60;
const REFRESH_MS = 250;

const EMPTY: LoopsState = {
  meta: undefined,
  details: undefined,
  activeLeaf: undefined,
  loops: undefined,
  entries: [],
  spawns: undefined,
  titles: new Map(),
  isCut: false,
  error: undefined,
};

export class LoopsSource {
  readonly state = new Store<LoopsState>(EMPTY);
  private readonly work = new AbortController();
  private readonly stream: EventStream;
  private readonly titles = new Map<string, string>();
  private timer = 0;

  constructor(private readonly session: string) {
    const path = address(sessionPath(session, "events"), { snapshot: true, types: EVENT_TYPES.join(",") });
    this.stream = new EventStream(path, {
      onFresh: () => undefined,
      onEvent: (event) => this.hear(event),
      onRefused: (error) => this.change({ error }),
    });
  }

  close(): void {
    this.stream.close();
    this.work.abort();
    window.clearTimeout(this.timer);
  }

  /** Reads again, soon: several changes in a row are read once. */
  refresh(): void {
    if (this.timer === 0) {
      this.timer = window.setTimeout(() => void this.load(), REFRESH_MS);
    }
  }

  private change(part: Partial<LoopsState>): void {
    this.state.update((state) => ({ ...state, ...part }));
  }

  private hear(event: ServerEvent): void {
    if (event.name === "snapshot") {
      const { meta, details, active_leaf: activeLeaf } = JSON.parse(event.data) as { meta: SessionMeta; details: SessionDetails; active_leaf?: string };
      this.change({ meta, details, activeLeaf });
    } else if (event.name === "live") {
      if (this.state.get().meta === undefined) {
        this.change({ error: new ApiError(404, "session/not_found", "There is no such session.", "") });
      }
      return;
    } else if (!["session::loop-changed", "session::message-added", "message.started"].includes(event.name)) {
      // What the session is called or does changed, or the place in the feed is lost: begin with a new snapshot.
      return this.stream.restart();
    }
    this.refresh();
  }

  private async load(): Promise<void> {
    try {
      const [loops, entries, spawns, { meta, details }] = await Promise.all([
        this.readLoops(),
        this.readEntries(),
        this.get<SpawnsAnswer>("spawns"),
        readSession(this.session, this.work.signal),
      ]);
      this.change({ meta, details, loops, entries, spawns, isCut: loops.length >= LOOPS_MAX || entries.length >= ENTRIES_MAX, error: undefined });
      await this.readTitles(spawns);
    } catch (error) {
      if (!isAbort(error)) {
        this.change({ error });
      }
    } finally {
      this.timer = 0;
    }
  }

  private get<T>(part: string, query = {}): Promise<T> {
    return getJson<T>(sessionPath(this.session, part), query, this.work.signal);
  }

  private async readLoops(): Promise<LoopSummary[]> {
    const loops: LoopSummary[] = [];
    let cursor: string | undefined;
    do {
      const page: LoopsPage = await this.get("loops", { limit: PAGE, cursor });
      loops.push(...page.loops);
      cursor = page.next_cursor;
    } while (cursor !== undefined && loops.length < LOOPS_MAX);
    return loops;
  }

  private async readEntries(): Promise<LoopEntry[]> {
    const entries: LoopEntry[] = [];
    let cursor: string | undefined;
    do {
      const page: LoopEntryPage = await this.get("entries", { limit: PAGE, cursor });
      entries.push(...page.entries);
      cursor = page.next_cursor;
    } while (cursor !== undefined && entries.length < ENTRIES_MAX);
    return entries.sort((a, b) => a.timestamp - b.timestamp);
  }

  /** What the other sessions of the family are called. Those that are gone keep their ids. */
  private async readTitles(spawns: SpawnsAnswer): Promise<void> {
    const unknown = spawns.sessions.map(({ session_id: id }) => id).filter((id) => id !== this.session && !this.titles.has(id));
    const read = async (id: string) => {
      const { meta } = await getJson<{ meta: SessionMeta }>(sessionPath(id), {}, this.work.signal);
      this.titles.set(id, sessionTitle(meta));
    };
    await Promise.allSettled(unknown.slice(0, TITLES_MAX).map(read));
    if (unknown.length > 0) {
      this.change({ titles: new Map(this.titles) });
    }
  }
}

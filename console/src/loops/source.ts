// The loops of a session, what they said, and the sessions that they spawned, kept current.

import { ApiError, address, getJson, isAbort, sessionPath } from "../api/client";
import { EventStream, type ServerEvent } from "../api/events";
import { readSession } from "../api/session";
import type { LoopEntry, LoopEntryPage, LoopSummary, LoopsPage, SpawnsAnswer } from "../api/loops";
import type { SessionDetails, SessionMeta } from "../api/types";
import { sessionTitle } from "../ui/format";
import { Store } from "../ui/store";
import { RecordedEntries, type Stretch } from "./entries";
import { LoopPages } from "./pages";

export interface LoopsState {
  meta: SessionMeta | undefined;
  details: SessionDetails | undefined;
  activeLeaf: string | undefined;
  loops: LoopSummary[] | undefined;
  /** Those that were read so far, in the order in which they were said. */
  entries: LoopEntry[];
  /** How many loops were read so far, while there are more to come. */
  loopsSoFar: number | undefined;
  /** Whether entries are being read that somebody looks at. */
  isReading: boolean;
  spawns: SpawnsAnswer | undefined;
  /** What the sessions of the family are called. */
  titles: ReadonlyMap<string, string>;
  error: unknown;
}

const EVENT_TYPES = ["session::loop-changed", "session::message-added", "session::status-changed", "session::meta-updated", "session::created"];
const PAGE = 500;
const TITLES_MAX = 60;
const REFRESH_MS = 250;

const EMPTY: LoopsState = {
  meta: undefined,
  details: undefined,
  activeLeaf: undefined,
  loops: undefined,
  entries: [],
  loopsSoFar: undefined,
  isReading: false,
  spawns: undefined,
  titles: new Map(),
  error: undefined,
};

export class LoopsSource {
  readonly state = new Store<LoopsState>(EMPTY);
  private readonly work = new AbortController();
  private readonly stream: EventStream;
  private readonly titles = new Map<string, string>();
  private readonly pages = new LoopPages((cursor) => this.get<LoopsPage>("loops", { limit: PAGE, cursor }));
  private readonly said = new RecordedEntries((query) => this.get<LoopEntryPage>("entries", query));
  /** The loops that something happened in since they were read. */
  private changed = new Set<string>();
  private timer = 0;
  /** Whether loops or entries are being read, so that nothing is read twice at the same time. */
  private isBusy = false;
  private wanted: Stretch[] = [];

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

  /** Reads the entries of these stretches of time, which somebody looks at, in the place of those that were wanted before. */
  want(stretches: Stretch[]): void {
    this.wanted = stretches;
    if (!this.isBusy && this.missing().length > 0) {
      void this.inTurn(() => this.readWanted());
    }
  }

  private change(part: Partial<LoopsState>): void {
    this.state.update((state) => ({ ...state, ...part }));
  }

  private hear(event: ServerEvent): void {
    if (event.name === "snapshot") {
      const { meta, details, active_leaf: activeLeaf } = JSON.parse(event.data) as { meta: SessionMeta; details: SessionDetails; active_leaf?: string };
      this.change({ meta, details, activeLeaf });
      // What happened before it is not known.
      this.pages.forget();
    } else if (event.name === "live") {
      if (this.state.get().meta === undefined) {
        this.change({ error: new ApiError(404, "session/not_found", "There is no such session.", "") });
      }
      return;
    } else if (event.name === "session::loop-changed") {
      this.noteChange(event.data);
    } else if (!EVENT_TYPES.includes(event.name) && event.name !== "message.started") {
      // The place in the feed is lost: begin with a new snapshot.
      return this.stream.restart();
    }
    this.refresh();
  }

  /** Which loop an event is about; a compaction changes loops that its event does not name. */
  private noteChange(data: string): void {
    const { payload } = JSON.parse(data) as { payload: { loop_id: string; event?: { type?: string } } };
    this.changed.add(payload.loop_id);
    if (/compact/i.test(payload.event?.type ?? "")) {
      this.pages.forget();
    }
  }

  private async load(): Promise<void> {
    if (this.isBusy) {
      this.timer = window.setTimeout(() => void this.load(), REFRESH_MS);
      return;
    }
    this.timer = 0;
    await this.inTurn(() => this.readNews());
  }

  private async readNews(): Promise<void> {
    const changed = this.changed;
    this.changed = new Set();
    try {
      const [spawns, { meta, details, active_leaf: activeLeaf }] = await Promise.all([
        this.get<SpawnsAnswer>("spawns"),
        readSession(this.session, this.work.signal),
        this.said.readNews(),
        this.pages.readNews(changed, () => this.showProgress()),
      ]);
      const loops = this.pages.known();
      this.change({ meta, details, activeLeaf, loops, loopsSoFar: undefined, entries: this.said.known(), spawns, error: undefined });
      await this.readTitles(spawns);
    } catch (error) {
      changed.forEach((id) => this.changed.add(id));
      throw error;
    }
    await this.readWanted();
  }

  /** The first page is shown when it is there; of those behind it their number, until the last. */
  private showProgress(): void {
    const loops = this.pages.known();
    const { loops: shown = loops, loopsSoFar } = this.state.get();
    if (shown === loops || loopsSoFar !== undefined) {
      this.change({ loops: shown, loopsSoFar: loops.length });
    }
  }

  private async readWanted(): Promise<void> {
    for (let missing = this.missing(); missing.length > 0; ) {
      this.change({ isReading: true });
      await this.said.readTowards(missing[0] as Stretch);
      const still = this.missing();
      // Pages on the way to what is wanted change nothing that is in sight.
      if (still.length < missing.length) {
        this.change({ entries: this.said.known(), error: undefined });
      }
      missing = still;
    }
  }

  private missing(): Stretch[] {
    return this.wanted.filter((stretch) => !this.said.has(stretch));
  }

  private async inTurn(read: () => Promise<void>): Promise<void> {
    this.isBusy = true;
    try {
      await read();
    } catch (error) {
      if (!isAbort(error)) {
        this.change({ error });
      }
    } finally {
      this.isBusy = false;
      this.change({ isReading: false });
    }
  }

  private get<T>(part: string, query = {}): Promise<T> {
    return getJson<T>(sessionPath(this.session, part), query, this.work.signal);
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

// One session as it is shown: a part of a path, kept current by the session's feed.

import { ApiError, isAbort } from "../api/client";
import { EventStream, type ServerEvent } from "../api/events";
import { readSession } from "../api/session";
import type { PathItem, SessionDetails, SessionMeta } from "../api/types";
import { Store } from "../ui/store";
import { sessionFeedAddress } from "./addresses";
import { type Delta, type Finish, type LiveMessage, withDelta, withFinish } from "./live";
import { activeEnd, around, newerThan, newest, olderThan, oldest, type Part } from "./path";

export interface TranscriptState {
  meta: SessionMeta | undefined;
  details: SessionDetails | undefined;
  /** Where the active path ends. */
  activeLeaf: string | undefined;
  /** Where the path that is shown ends, when it is not the active one. */
  otherLeaf: string | undefined;
  items: PathItem[];
  streaming: ReadonlySet<string>;
  hasOlder: boolean;
  hasNewer: boolean;
  isLoading: boolean;
  isDeleted: boolean;
  error: unknown;
}

const START: TranscriptState = {
  meta: undefined,
  details: undefined,
  activeLeaf: undefined,
  otherLeaf: undefined,
  items: [],
  streaming: new Set(),
  hasOlder: false,
  hasNewer: false,
  isLoading: true,
  isDeleted: false,
  error: undefined,
};

/** Entries that are kept in the page; those farther away are read again when somebody scrolls there. */
const KEPT_ITEMS = 240;

/** Messages are gathered for this long before their sums are read. */
const DETAILS_MS = 250;

export class Transcript {
  readonly state = new Store<TranscriptState>(START);
  private readonly stream: EventStream;
  private readonly live = new Map<string, LiveMessage>();
  private readonly work = new AbortController();
  /** Events and loads are done one after the other, so that each sees what the one before left. */
  private queue: Promise<void> = Promise.resolve();
  private pending: TranscriptState | undefined;
  private isPaging = false;
  private detailsTimer = 0;

  constructor(
    readonly session: string,
    private target: string | undefined,
  ) {
    this.stream = new EventStream(sessionFeedAddress(session), {
      onFresh: () => this.live.clear(),
      onEvent: (event) => this.enqueue(() => this.take(event)),
      onRefused: (error) => this.change({ isLoading: false, error }),
    });
  }

  close(): void {
    this.stream.close();
    window.clearTimeout(this.detailsTimer);
    this.work.abort();
  }

  retry(): void {
    this.stream.restart();
  }

  /** Shows an entry, wherever it is. */
  show(entry: string): void {
    this.target = entry;
    this.enqueue(() => this.loadPath());
  }

  showNewest(): void {
    this.target = undefined;
    this.enqueue(() => this.loadPath());
  }

  showOldest(): void {
    this.enqueue(async () => this.replaceItems(await oldest(this.session, this.leaf(), this.work.signal)));
  }

  async loadOlder(): Promise<void> {
    const first = this.now().items[0];
    if (first !== undefined && this.now().hasOlder) {
      await this.page(async () => {
        const part = await olderThan(this.session, this.leaf(), first.entry_id, this.work.signal);
        const { items, hasNewer } = this.now();
        if (items[0] !== first) {
          return;
        }
        const all = [...part.items, ...items];
        this.change({ items: all.slice(0, KEPT_ITEMS), hasOlder: part.hasOlder, hasNewer: hasNewer || all.length > KEPT_ITEMS });
      });
    }
  }

  async loadNewer(): Promise<void> {
    const last = this.now().items.at(-1);
    if (last !== undefined && this.now().hasNewer) {
      await this.page(async () => {
        const part = await newerThan(this.session, this.leaf(), last.entry_id, this.work.signal);
        const { items, hasOlder } = this.now();
        if (items.at(-1) !== last) {
          return;
        }
        const all = [...items, ...part.items];
        this.change({ items: all.slice(-KEPT_ITEMS), hasNewer: part.hasNewer, hasOlder: hasOlder || all.length > KEPT_ITEMS });
      });
    }
  }

  /** The message of an item in its newest revision that is known. */
  shown(item: PathItem): PathItem {
    const live = this.live.get(item.entry_id);
    if (live === undefined || item.message === undefined || (item.revision ?? -1) >= live.revision) {
      return item;
    }
    return { ...item, message: live.message, revision: live.revision };
  }

  private leaf(): string | undefined {
    return this.now().otherLeaf ?? this.now().activeLeaf;
  }

  private enqueue(step: () => Promise<void> | void): void {
    this.queue = this.queue.then(step).catch((error: unknown) => {
      if (!isAbort(error)) {
        this.change({ isLoading: false, error });
      }
    });
  }

  /** One page at a time; a page that fails is asked for again by scrolling on. */
  private async page(read: () => Promise<void>): Promise<void> {
    if (this.isPaging) {
      return;
    }
    this.isPaging = true;
    await read().catch(() => undefined);
    this.isPaging = false;
  }

  private now(): TranscriptState {
    return this.pending ?? this.state.get();
  }

  /** Changes are shown once a frame: a reply may grow faster than the screen is drawn. */
  private change(changes: Partial<TranscriptState>): void {
    if (this.pending === undefined) {
      requestAnimationFrame(() => {
        const next = this.pending;
        this.pending = undefined;
        if (next !== undefined) {
          this.state.set(next);
        }
      });
    }
    this.pending = { ...this.now(), ...changes };
  }

  private async take(event: ServerEvent): Promise<void> {
    const data = JSON.parse(event.data) as Record<string, unknown>;
    const payload = (data["payload"] ?? data) as never;
    switch (event.name) {
      case "snapshot":
        return this.begin(payload);
      case "live":
        return this.begun();
      case "gap":
        return this.stream.restart();
      case "session::message-added":
        return this.added(payload, false);
      case "message.started":
        return this.added(payload, true);
      case "message.delta":
        return this.grown(payload);
      case "message.snapshot":
        return this.replaced(payload);
      case "message.finished":
        return this.finished(payload);
      case "session::status-changed":
      case "session::meta-updated":
        return this.metaChanged(payload);
      case "session::leaf-moved":
        return this.leafMoved(payload);
      case "session::deleted":
        return this.change({ isDeleted: true });
      case "session::created":
        return this.stream.restart();
      default:
        return undefined;
    }
  }

  private async begin(snapshot: { meta: SessionMeta; details: SessionDetails; active_leaf?: string; messages: PathItem[] }): Promise<void> {
    const { meta, details, active_leaf: activeLeaf, messages } = snapshot;
    // The feed goes on from these: what it tells of them are changes only.
    for (const { entry_id: id, message, revision = 0 } of messages) {
      if (message !== undefined) {
        this.live.set(id, { message, revision, isStreaming: false });
      }
    }
    this.change({ meta, details, activeLeaf, isDeleted: false, error: undefined });
    await this.loadPath();
  }

  /** The feed has sent its snapshot. If there was none, the session does not exist. */
  private begun(): void {
    if (this.now().meta === undefined) {
      this.change({ isLoading: false, error: new ApiError(404, "session/not_found", "There is no such session.", "") });
    }
  }

  private async loadPath(): Promise<void> {
    const { activeLeaf } = this.now();
    const { signal } = this.work;
    if (this.target === undefined) {
      this.change({ otherLeaf: undefined });
      this.replaceItems(activeLeaf === undefined ? NOTHING : await this.activePath(activeLeaf));
      return;
    }
    const target = this.target;
    try {
      this.replaceItems(await around(this.session, activeLeaf, target, signal));
      this.change({ otherLeaf: undefined });
    } catch (error) {
      if (!(error instanceof ApiError) || error.isTransient) {
        throw error;
      }
      // It is not on the active path: show the path that leads to it.
      this.replaceItems(await newest(this.session, target, signal));
      this.change({ otherLeaf: target });
    }
  }

  /** The end of the active path. The page may have asked for it before it knew the leaf; what it got then may be of another one. */
  private async activePath(leaf: string): Promise<Part> {
    const part = await activeEnd(this.session, this.work.signal);
    const hasLeaf = part.items.some((item) => item.entry_id === leaf);
    return hasLeaf ? part : newest(this.session, leaf, this.work.signal);
  }

  private replaceItems(part: Part): void {
    const items = part.items.map((item) => this.shown(item));
    this.change({ items, hasOlder: part.hasOlder, hasNewer: part.hasNewer, isLoading: false, error: undefined });
  }

  private async added(event: { parent_id: string | null } & PathItem, isStreaming: boolean): Promise<void> {
    const { entry_id: id, parent_id: parent, message, custom } = event;
    const { activeLeaf, otherLeaf, items, hasNewer } = this.now();
    if (message !== undefined) {
      this.setLive(id, { message, revision: 0, isStreaming });
    }
    const isNext = (parent ?? undefined) === activeLeaf;
    this.change({ activeLeaf: id });
    this.countEntry(message !== undefined);
    this.readDetailsSoon();
    if (otherLeaf !== undefined || items.some((item) => item.entry_id === id)) {
      return;
    }
    if (!isNext) {
      await this.loadPath();
      return;
    }
    if (!hasNewer) {
      const item: PathItem = { entry_id: id, parent_id: parent, timestamp: event.timestamp ?? Date.now() };
      if (message !== undefined) {
        item.message = message;
      }
      if (custom !== undefined) {
        item.custom = custom;
      }
      if (event.origin !== undefined) {
        item.origin = event.origin;
      }
      const all = [...items, item];
      // Far behind the reader's place the newest ones are left out until they are scrolled to.
      this.change(all.length > 2 * KEPT_ITEMS ? { hasNewer: true } : { items: all });
    }
  }

  private grown(delta: Delta & { entry_id: string }): void {
    const live = this.live.get(delta.entry_id);
    if (live !== undefined) {
      this.setLive(delta.entry_id, withDelta(live, delta));
    }
  }

  private replaced(event: { entry_id: string; message: LiveMessage["message"]; revision: number }): void {
    const isStreaming = this.live.get(event.entry_id)?.isStreaming ?? false;
    this.setLive(event.entry_id, { message: event.message, revision: event.revision, isStreaming });
  }

  private finished(finish: Finish & { entry_id: string }): void {
    const live = this.live.get(finish.entry_id);
    if (live !== undefined) {
      this.setLive(finish.entry_id, withFinish(live, finish));
    }
    this.readDetailsSoon();
  }

  /** Tokens and cost are sums that the server keeps; several messages in a row are read once. */
  private readDetailsSoon(): void {
    if (this.detailsTimer === 0) {
      this.detailsTimer = window.setTimeout(() => {
        this.detailsTimer = 0;
        void readSession(this.session, this.work.signal).then(
          ({ details }) => this.change({ details }),
          // The next message reads them again.
          () => undefined,
        );
      }, DETAILS_MS);
    }
  }

  private setLive(id: string, live: LiveMessage): void {
    const known = this.live.get(id);
    if (known !== undefined && known.revision > live.revision) {
      return;
    }
    this.live.set(id, live);
    const { items, streaming } = this.now();
    const at = items.findLastIndex((item) => item.entry_id === id);
    const item = items[at];
    if (item !== undefined) {
      this.change({ items: items.with(at, this.shown(item)) });
    }
    if (streaming.has(id) !== live.isStreaming) {
      const next = new Set(streaming);
      live.isStreaming ? next.add(id) : next.delete(id);
      this.change({ streaming: next });
    }
  }

  private metaChanged(event: Partial<SessionMeta> & { timestamp: number }): void {
    const { meta } = this.now();
    if (meta === undefined) {
      return;
    }
    const { timestamp, ...changes } = event;
    const next: SessionMeta = { ...meta, ...changes, updated_at: timestamp };
    if (event.status !== undefined && event.status_reason === undefined) {
      delete next.status_reason;
    }
    this.change({ meta: next });
  }

  private countEntry(isMessage: boolean): void {
    const { meta } = this.now();
    if (meta !== undefined && isMessage) {
      this.change({ meta: { ...meta, message_count: meta.message_count + 1 } });
    }
  }

  private async leafMoved(event: { entry_id: string | null }): Promise<void> {
    this.change({ activeLeaf: event.entry_id ?? undefined });
    if (this.now().otherLeaf === undefined || this.now().otherLeaf === event.entry_id) {
      this.target = undefined;
      await this.loadPath();
    }
  }
}

const NOTHING: Part = { items: [], hasOlder: false, hasNewer: false };

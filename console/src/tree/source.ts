// The entries of a session with all branches, read by pages and kept current.

import { ApiError, address, getJson, isAbort, sessionPath } from "../api/client";
import { EventStream, type ServerEvent } from "../api/events";
import { readSession } from "../api/session";
import type { CustomPayload, Message, SessionDetails, SessionMeta } from "../api/types";
import { dataOf, previewOf } from "../transcript/preview";
import { Store } from "../ui/store";
import { layOut, type TreeLayout } from "./layout";

export interface TreeEntry {
  id: string;
  parent: string | undefined;
  /** A role, or `bookkeeping`. */
  kind: string;
  preview: string;
  /** The tool whose result it is. */
  tool: string;
  at: number;
  /** Whether a call failed, or a reply ended with an error. */
  hasFailed: boolean;
}

export interface TreeState {
  meta: SessionMeta | undefined;
  details: SessionDetails | undefined;
  layout: TreeLayout | undefined;
  labels: ReadonlyMap<string, string>;
  activeLeaf: string | undefined;
  error: unknown;
}

/** One entry as `GET …/entries` answers it. */
interface EntryItem {
  entry_id: string;
  parent_id: string | null;
  timestamp: number;
  message?: Message;
  custom?: CustomPayload;
}

interface EntryPage {
  entries: EntryItem[];
  next_cursor?: string;
}

const EVENT_TYPES = [
  "session::message-added",
  "session::leaf-moved",
  "session::label-changed",
  "session::status-changed",
  "session::meta-updated",
  "session::created",
];

const PAGE_ENTRIES = 500;
const REFRESH_MS = 200;

export class TreeSource {
  readonly state = new Store<TreeState>({ meta: undefined, details: undefined, layout: undefined, labels: new Map(), activeLeaf: undefined, error: undefined });
  private readonly entries = new Map<string, TreeEntry>();
  private readonly labels = new Map<string, string>();
  private readonly work = new AbortController();
  private readonly stream: EventStream;
  /** Where the last page begins; it is read again when entries were added. */
  private lastPage: string | undefined;
  private timer = 0;
  private activeLeaf: string | undefined;

  constructor(private readonly session: string) {
    const path = address(sessionPath(session, "events"), { snapshot: true, types: EVENT_TYPES.join(",") });
    this.stream = new EventStream(path, {
      onFresh: () => undefined,
      onEvent: (event) => this.hear(event),
      onRefused: (error) => this.state.update((state) => ({ ...state, error })),
    });
  }

  close(): void {
    this.stream.close();
    this.work.abort();
    window.clearTimeout(this.timer);
  }

  refresh(): void {
    this.schedule();
  }

  private hear(event: ServerEvent): void {
    const data = JSON.parse(event.data) as Record<string, unknown>;
    const payload = (data["payload"] ?? data) as { entry_id?: string | null };
    switch (event.name) {
      case "snapshot": {
        const { meta, details, active_leaf: activeLeaf } = data as unknown as TreeState & { active_leaf?: string };
        this.activeLeaf = activeLeaf;
        this.state.update((state) => ({ ...state, meta, details }));
        break;
      }
      case "session::message-added":
      case "message.started":
      case "session::leaf-moved":
        this.activeLeaf = payload.entry_id ?? undefined;
        break;
      case "session::label-changed":
        break;
      case "live":
        return this.begun();
      default:
        // What the session is called or does changed, or the place in the feed is lost: begin with a new snapshot.
        return this.stream.restart();
    }
    this.schedule();
  }

  /** The feed has sent its snapshot. If there was none, the session does not exist. */
  private begun(): void {
    if (this.state.get().meta === undefined) {
      const error = new ApiError(404, "session/not_found", "There is no such session.", "");
      this.state.update((state) => ({ ...state, error }));
    }
  }

  private schedule(): void {
    if (this.timer === 0) {
      this.timer = window.setTimeout(() => void this.load(), REFRESH_MS);
    }
  }

  private async load(): Promise<void> {
    try {
      const [{ meta, details }] = await Promise.all([readSession(this.session, this.work.signal), this.readEntries()]);
      const { activeLeaf } = this;
      const layout = layOut([...this.entries.values()], activeLeaf);
      this.state.update((state) => ({ ...state, meta, details, layout, labels: new Map(this.labels), activeLeaf, error: undefined }));
    } catch (error) {
      if (!isAbort(error)) {
        this.state.update((state) => ({ ...state, error }));
      }
    } finally {
      this.timer = 0;
    }
  }

  /** Reads the last page that is known, and those behind it. */
  private async readEntries(): Promise<void> {
    for (;;) {
      const query = { limit: PAGE_ENTRIES, cursor: this.lastPage };
      const page = await getJson<EntryPage>(sessionPath(this.session, "entries"), query, this.work.signal);
      page.entries.forEach((item) => this.take(item));
      if (page.next_cursor === undefined) {
        return;
      }
      this.lastPage = page.next_cursor;
    }
  }

  private take(item: EntryItem): void {
    const { entry_id: id, parent_id: parent, timestamp: at, message } = item;
    const { target_id: target, label } = dataOf(item.custom);
    if (item.custom?.custom_type === "bough.label" && typeof target === "string") {
      typeof label === "string" ? this.labels.set(target, label) : this.labels.delete(target);
    }
    const hasFailed = message?.is_error === true || message?.stop_reason === "error";
    this.entries.set(id, { id, parent: parent ?? undefined, at, kind: message?.role ?? "bookkeeping", preview: previewOf(item), tool: toolOf(message), hasFailed });
  }
}

/** The tool that a message is the result of, where its text does not say it. */
function toolOf(message: Message | undefined): string {
  return message?.role === "function_result" && message.content.length > 0 ? (message.function_id ?? "") : "";
}

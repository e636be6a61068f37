/** One session: a conversation that branches. */

import { NotFound } from "./errors.js";
import type { Http } from "./http.js";
import { asMessage, newId, newKey, path } from "./requests.js";
import { Reply } from "./reply.js";
import type {
  Appended,
  Branch,
  Compaction,
  Context,
  Entry,
  EntryPage,
  Format,
  Json,
  Message,
  NewEntry,
  Role,
  SessionMeta,
  SessionUsage,
  Status,
  UndoneCompaction,
} from "./types.js";
import { Watch } from "./watch.js";

/** A delta is sent at least so many milliseconds after the one before. */
const JOIN_INTERVAL = 50;

export interface AppendOptions {
  /** The format of the message; Bough's own when there is none. It is kept as it is. */
  format?: Format;
  /** Names the entry. Repeating a call with the same id changes nothing; without one, the client draws it. */
  entryId?: string;
  /** The entry that this one goes below; by default the active leaf. Another one begins a branch. */
  parentId?: string;
  /** Append only when the active leaf still is this entry (`""` for a session without entries). */
  expectedLeaf?: string;
  origin?: Json;
  /** Make the session when it is missing. */
  create?: boolean;
}

export interface StreamOptions extends AppendOptions {
  /** What the message is before the first delta; by default an empty message of the model. */
  message?: Message;
  model?: string;
  /** Milliseconds within which pieces are sent together. */
  joinInterval?: number;
}

export interface MessagesOptions {
  format?: Format;
  fromEntryId?: string;
  roles?: readonly Role[];
  includeCustom?: boolean;
  order?: "oldest" | "newest";
  pageSize?: number;
}

export interface EntriesOptions {
  ids?: readonly string[];
  customType?: string;
  idPrefix?: string;
  order?: "oldest" | "newest";
  limit?: number;
  maxBytes?: number;
  cursor?: string;
}

export interface ForkOptions {
  title?: string;
  newSessionId?: string;
  whole?: boolean;
  keepIds?: boolean;
}

export interface WatchOptions {
  /** Begin behind this cursor; `"start"` is before the first event. By default the feed begins now. */
  after?: string;
  types?: readonly string[];
  roles?: readonly Role[];
  /** Whether messages that stream come in pieces; otherwise they come whole. */
  deltas?: boolean;
}

/** A session of the store. Made by `create`, `ensure` or `session` of the client; making one costs no request. */
export class Session {
  readonly id: string;
  readonly #http: Http;

  constructor(http: Http, id: string) {
    this.#http = http;
    this.id = id;
  }

  /** Appends a message and returns its entry. A text is a message of the user. */
  append(message: string | Message, options: AppendOptions = {}): Promise<Appended> {
    return this.#append({ message: asMessage(message), format: options.format, ...placeOf(options) });
  }

  /** Appends any JSON under a word of the application. It is no message, and conversations leave it out. */
  appendCustom(customType: string, data: unknown, options: Omit<AppendOptions, "format"> = {}): Promise<Appended> {
    return this.#append({ custom: { custom_type: customType, data }, ...placeOf(options) });
  }

  /** Appends several entries in one durable commit, all of them or none, and returns them in order. */
  async appendMany(
    entries: Iterable<NewEntry>,
    options: { expectedLeaf?: string; meta?: Json; create?: boolean } = {},
  ): Promise<Appended[]> {
    const body = {
      entries: Array.from(entries, (entry) => ({ entry_id: newId("e"), ...entry })),
      expected_leaf: options.expectedLeaf,
      meta: options.meta,
      create: options.create,
    };
    const place = this.#path("entries", "batch");
    const answer = await this.#http.call<{ entries: Appended[] }>("POST", place, { body, key: newKey() });
    return answer.entries;
  }

  /**
   * Writes a message piece by piece; readers see each piece as soon as it is durable. The message is finished when `write`
   * ends, also when it throws.
   *
   * ```ts
   * await session.stream(async (reply) => {
   *   for await (const token of tokens) await reply.text(token);
   *   reply.finish({ usage: { input: 12, output: 3 } });
   * });
   * ```
   */
  stream<T>(write: (reply: Reply) => T | Promise<T>, options: StreamOptions = {}): Promise<T> {
    const message: Message = { ...(options.message ?? { role: "assistant", content: [] }), ...given({ model: options.model }) };
    const place = placeOf(options);
    const begin = {
      ...given({ message, stream: true, format: options.format, ...place }),
      message,
      entry_id: options.entryId ?? newId("e"),
    };
    return new Reply(this.#http, this.id, begin, options.joinInterval ?? JOIN_INTERVAL).run(write);
  }

  /** Replaces a message's content and returns its revision. */
  async update(entryId: string, content: readonly Json[], options: { expectedRevision?: number } = {}): Promise<number> {
    const body = { content, expected_revision: options.expectedRevision };
    const answer = await this.#http.call<{ revision: number }>("PUT", this.#path("entries", entryId), { body });
    return answer.revision;
  }

  /** Names an entry, or takes its name away with `null`. */
  async label(entryId: string, label: string | null): Promise<void> {
    await this.#http.call("PUT", this.#path("entries", entryId, "label"), { body: label === null ? {} : { label } });
  }

  /** Reads what the session says of itself; throws `NotFound` when there is no such session. */
  async meta(): Promise<SessionMeta> {
    const answer = await this.#http.call<{ meta: SessionMeta; active_leaf?: string | null }>("GET", this.#path());
    return { ...answer.meta, active_leaf: answer.active_leaf ?? null };
  }

  /** Whether there is such a session. */
  async exists(): Promise<boolean> {
    try {
      await this.meta();
      return true;
    } catch (error) {
      if (error instanceof NotFound) return false;
      throw error;
    }
  }

  /** The messages of the active path, or of the path to `fromEntryId`. Pages are read as they are needed. */
  messages(options: MessagesOptions = {}): AsyncGenerator<Entry, void> {
    const place = options.order === "newest" ? this.#path("messages", "tail") : this.#path("messages");
    return this.#http.pages<Entry>(place, "messages", {
      format: options.format,
      from_entry_id: options.fromEntryId,
      roles: options.roles,
      include_custom: options.includeCustom,
      limit: options.pageSize,
    });
  }

  /** Reads one entry; throws `NotFound` when the session has no such entry. */
  async entry(entryId: string): Promise<Entry> {
    const answer = await this.#http.call<{ entry: Entry }>("GET", this.#path("entries", entryId));
    return answer.entry;
  }

  /** Reads one page of entries by key, on any branch: by ids, by custom type, by how their ids begin. */
  entries(options: EntriesOptions = {}): Promise<EntryPage> {
    const params = {
      ids: options.ids,
      custom_type: options.customType,
      id_prefix: options.idPrefix,
      order: options.order,
      limit: options.limit,
      max_bytes: options.maxBytes,
      cursor: options.cursor,
    };
    return this.#http.call<EntryPage>("GET", this.#path("entries"), { params });
  }

  /** What a model would be sent: the path with compactions and summaries applied, within a budget of tokens. */
  context(options: { format?: Format; maxTokens?: number; fromEntryId?: string } = {}): Promise<Context> {
    const params = { format: options.format, max_tokens: options.maxTokens, from_entry_id: options.fromEntryId };
    return this.#http.call<Context>("GET", this.#path("context"), { params });
  }

  /** Adds up tokens and cost, of the session and of one branch. */
  usage(options: { fromEntryId?: string } = {}): Promise<SessionUsage> {
    return this.#http.call<SessionUsage>("GET", this.#path("usage"), { params: { from_entry_id: options.fromEntryId } });
  }

  /** Follows the session: an endless iterator of events that goes on over broken connections and restarts. */
  watch(options: WatchOptions = {}): Watch {
    return new Watch(this.#http, this.#path("events"), watchParams(options), this.id);
  }

  /** The ends of the branches, the most recently active first. */
  branches(): AsyncGenerator<Branch, void> {
    return this.#http.pages<Branch>(this.#path("branches"), "branches", {});
  }

  /** Makes the active path end at an entry, or before the first one with `null`. */
  async switchTo(entryId: string | null, options: { expectedLeaf?: string } = {}): Promise<void> {
    const place = this.#path("leaf");
    if (entryId === null) {
      const params = { expected_leaf: options.expectedLeaf };
      await this.#http.call("DELETE", place, { params, key: newKey() });
    } else {
      const body = { entry_id: entryId, expected_leaf: options.expectedLeaf };
      await this.#http.call("PUT", place, { body, key: newKey() });
    }
  }

  /**
   * Copies the path to an entry, by default the active path, into a new session. With `whole`, every branch is copied; with
   * `keepIds`, the copies have the ids of the entries. The server draws the new session's id where `newSessionId` is not given.
   */
  async fork(entryId?: string, options: ForkOptions = {}): Promise<Session> {
    const { title, newSessionId, whole, keepIds } = options;
    const body = { entry_id: entryId, title, new_session_id: newSessionId, whole, keep_ids: keepIds };
    const answer = await this.#http.call<{ session_id: string }>("POST", this.#path("fork"), { body, key: newKey() });
    return new Session(this.#http, answer.session_id);
  }

  /** Hides entries from every read, all or none, and returns how many were hidden now. What follows them stays. */
  async hide(entryIds: Iterable<string>): Promise<number> {
    const body = { entry_ids: [...entryIds] };
    const answer = await this.#http.call<{ hidden: number }>("POST", this.#path("entries", "hide"), { body });
    return answer.hidden;
  }

  /** What `compact` would do: what a summary would replace, what stays, and tokens before and after. */
  planCompaction(
    options: { keepRecentTokens?: number; onlyIfDue?: boolean; includeConversation?: boolean } = {},
  ): Promise<Compaction> {
    const { keepRecentTokens, onlyIfDue, includeConversation } = options;
    const params = {
      keep_recent_tokens: keepRecentTokens,
      only_if_due: onlyIfDue,
      include_conversation: includeConversation,
    };
    return this.#http.call<Compaction>("GET", this.#path("compaction"), { params });
  }

  /** Puts a summary in the place of the older part of the conversation; without one, fixed rules write it. Nothing is removed. */
  compact(
    summary?: string,
    options: { keepRecentTokens?: number; onlyIfDue?: boolean; expectedLeaf?: string } = {},
  ): Promise<Compaction> {
    const { keepRecentTokens, onlyIfDue, expectedLeaf } = options;
    const body = {
      summary,
      digest: summary === undefined,
      keep_recent_tokens: keepRecentTokens,
      only_if_due: onlyIfDue,
      expected_leaf: expectedLeaf,
    };
    return this.#http.call<Compaction>("POST", this.#path("compaction"), { body, key: newKey() });
  }

  /** Takes the last compaction out of the context again. */
  undoCompaction(options: { expectedLeaf?: string } = {}): Promise<UndoneCompaction> {
    const params = { expected_leaf: options.expectedLeaf };
    return this.#http.call<UndoneCompaction>("DELETE", this.#path("compaction"), { params, key: newKey() });
  }

  /** Changes the title, the description or some of the metadata: members that are `null` in `metadata` are removed. */
  async setMeta(changes: { title?: string; description?: string; metadata?: Json }): Promise<SessionMeta> {
    const answer = await this.#http.call<{ meta: SessionMeta }>("PATCH", this.#path(), { body: changes, key: newKey() });
    return answer.meta;
  }

  /** Says what the session is doing. */
  async setStatus(status: Status, options: { reason?: string } = {}): Promise<void> {
    await this.#http.call("PUT", this.#path("status"), { body: { status, reason: options.reason } });
  }

  /** Puts the session away: lists leave it out. */
  async archive(): Promise<void> {
    await this.#http.call("PUT", this.#path("archive"), { body: {} });
  }

  /** Takes an archived session back. */
  async unarchive(): Promise<void> {
    await this.#http.call("DELETE", this.#path("archive"));
  }

  /** Moves the session to the trash, where it is kept for a while. Returns whether it was there. */
  async delete(): Promise<boolean> {
    const answer = await this.#http.call<{ deleted: boolean }>("DELETE", this.#path());
    return answer.deleted;
  }

  #path(...parts: string[]): string {
    return path("sessions", this.id, ...parts);
  }

  #append(entry: Json): Promise<Appended> {
    const body = { ...entry, entry_id: entry["entry_id"] ?? newId("e") };
    return this.#http.call<Appended>("POST", this.#path("entries"), { body });
  }
}

/** The parameters of a feed. */
export function watchParams(options: WatchOptions): { [name: string]: string | readonly string[] | undefined } {
  const { after, types, roles, deltas } = options;
  return { after, types, roles, deltas: deltas === false ? "off" : undefined };
}

function placeOf(options: AppendOptions): Json {
  return {
    entry_id: options.entryId,
    parent_id: options.parentId,
    expected_leaf: options.expectedLeaf,
    origin: options.origin,
    create: options.create,
  };
}

/** The members that are there. */
function given(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

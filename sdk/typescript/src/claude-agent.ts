/**
 * The session store of the Claude Agent SDK.
 *
 * ```ts
 * import { query } from "@anthropic-ai/claude-agent-sdk";
 * import { BoughSessionStore } from "boughdb/claude-agent";
 *
 * const sessionStore = new BoughSessionStore("http://127.0.0.1:7717");
 * for await (const message of query({ prompt: "Will it rain?", options: { sessionStore } })) console.log(message);
 * ```
 *
 * Each transcript is a session of Bough: what the user and the model said are its messages, and other lines are custom
 * entries between them.
 */

import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";

import { clientOf, collect, orWhenMissing, type UrlOrClient } from "./adapters.js";
import type { Bough } from "./client.js";
import { InvalidRequest, LeafConflict } from "./errors.js";
import type { Session } from "./session.js";
import type { Entry, Json, NewEntry, SessionMeta } from "./types.js";

export type { UrlOrClient } from "./adapters.js";

const FORMAT = "anthropic";
const OPAQUE = "claude-agent.line";
/** Where a message keeps the rest of the line that it came in. */
const LINE = "claude_agent_line";
/** How many lines or sessions are asked for at once. */
const PAGE = 500;
/** How many ids fit into one address. */
const IDS_AT_ONCE = 100;
/** What a session says of its transcript in its metadata, so that lists find it. */
const NAMES = {
  store: "claude_agent_store",
  projectKey: "claude_agent_project_key",
  session: "claude_agent_session",
  subpath: "claude_agent_subpath",
  summary: "claude_agent_summary",
} as const;

/**
 * Keeps transcripts of the Claude Agent SDK in Bough.
 *
 * Stores with another `prefix` do not see each other's transcripts. Deleted ones are in the trash of the server for a while.
 */
export class BoughSessionStore implements SessionStore {
  readonly #bough: Bough;
  readonly #prefix: string;

  constructor(urlOrClient?: UrlOrClient, options: { prefix?: string } = {}) {
    this.#bough = clientOf(urlOrClient);
    this.#prefix = options.prefix ?? "claude";
  }

  /** Appends lines in one commit. A line whose `uuid` is there already is left out. */
  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    for (let isDone = entries.length === 0; !isDone; ) {
      try {
        await this.#append(key, entries);
        isDone = true;
      } catch (error) {
        // Another process appended meanwhile; the summary is folded again on top of what it wrote.
        if (!(error instanceof LeafConflict)) throw error;
      }
    }
  }

  async #append(key: SessionKey, lines: SessionStoreEntry[]): Promise<void> {
    const session = this.#session(key);
    const meta = await orWhenMissing(session.meta(), undefined);
    const fresh = meta === undefined ? lines : await unknownLines(session, lines);
    if (fresh.length === 0) return;
    const options = { create: true, expectedLeaf: meta?.active_leaf ?? "", meta: { metadata: this.#metadata(key, meta, fresh) } };
    try {
      await session.appendMany(fresh.map((line) => (isMessage(line) ? messageOf(line) : customOf(line))), options);
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      // A line may hold a message that the API would not take; it is kept all the same.
      await session.appendMany(fresh.map(customOf), options);
    }
  }

  /** Returns all lines of a transcript, or `null` when it was never written. */
  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const found = this.#session(key).messages({ format: FORMAT, includeCustom: true, pageSize: PAGE });
    const entries = await orWhenMissing(collect(found), null);
    return entries === null ? null : entries.map(lineOf);
  }

  /** Returns the transcripts of a project, without those of its subagents. */
  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const metas = await this.#list({ projectKey, subpath: "" });
    return metas.map((meta) => ({ sessionId: textOf(meta, "session"), mtime: meta.updated_at }));
  }

  /** Returns the summaries of a project's transcripts. */
  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    return (await this.#list({ projectKey, subpath: "" })).map(summaryOf);
  }

  /** Deletes a transcript; one without a `subpath` with all of its subagents'. */
  async delete(key: SessionKey): Promise<void> {
    if (key.subpath !== undefined) {
      await this.#session(key).delete();
      return;
    }
    const metas = await this.#list({ projectKey: key.projectKey, session: key.sessionId });
    for (const meta of metas) await this.#bough.session(meta.session_id).delete();
  }

  /** Returns the subpaths of a transcript. */
  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    const metas = await this.#list({ projectKey: key.projectKey, session: key.sessionId });
    return metas.map((meta) => textOf(meta, "subpath")).filter((subpath) => subpath !== "");
  }

  #session(key: SessionKey): Session {
    const parts = [this.#prefix, key.projectKey, key.sessionId, key.subpath ?? ""];
    return this.#bough.session(parts.join("/").replace(/\/+$/, ""));
  }

  #list(members: { [name in keyof typeof NAMES]?: string }): Promise<SessionMeta[]> {
    const wanted = { ...members, store: this.#prefix };
    const metadata = Object.fromEntries(Object.entries(wanted).map(([name, value]) => [NAMES[name as keyof typeof NAMES], value]));
    return collect(this.#bough.list({ metadata, archived: "include", pageSize: PAGE }));
  }

  /** What lists find a transcript by, and its summary, which the SDK folds and only the SDK understands. */
  #metadata(key: SessionKey, meta: SessionMeta | undefined, lines: SessionStoreEntry[]): Json {
    const metadata: Json = {
      [NAMES.store]: this.#prefix,
      [NAMES.projectKey]: key.projectKey,
      [NAMES.session]: key.sessionId,
      [NAMES.subpath]: key.subpath ?? "",
    };
    if (key.subpath === undefined) {
      metadata[NAMES.summary] = foldSessionSummary(meta && summaryOf(meta), key, lines).data;
    }
    return metadata;
  }
}

function textOf(meta: SessionMeta, name: keyof typeof NAMES): string {
  return String(meta.metadata?.[NAMES[name]] ?? "");
}

function summaryOf(meta: SessionMeta): SessionSummaryEntry {
  const data = (meta.metadata?.[NAMES.summary] ?? {}) as Json;
  return { sessionId: textOf(meta, "session"), mtime: meta.updated_at, data };
}

/** The lines that are not there yet, by their `uuid`; lines without one are always new. */
async function unknownLines(session: Session, lines: SessionStoreEntry[]): Promise<SessionStoreEntry[]> {
  const named = lines.flatMap((line) => (line.uuid ? [line.uuid] : []));
  const known = new Set<string>();
  for (let start = 0; start < named.length; start += IDS_AT_ONCE) {
    const page = await session.entries({ ids: named.slice(start, start + IDS_AT_ONCE) });
    for (const entry of page.entries) known.add(entry.entry_id);
  }
  return lines.filter((line) => !line.uuid || !known.has(line.uuid));
}

function isMessage(line: SessionStoreEntry): boolean {
  const message = line["message"];
  if (typeof message !== "object" || message === null) return false;
  const { role } = message as Json;
  return (role === "user" || role === "assistant") && !(LINE in message);
}

function messageOf(line: SessionStoreEntry): NewEntry {
  const { message, ...rest } = line;
  return named(line, { message: { ...(message as Json), [LINE]: rest }, format: FORMAT });
}

function customOf(line: SessionStoreEntry): NewEntry {
  return named(line, { custom: { custom_type: OPAQUE, data: line } });
}

function named(line: SessionStoreEntry, entry: NewEntry): NewEntry {
  return line.uuid ? { ...entry, entry_id: line.uuid } : entry;
}

function lineOf(entry: Entry): SessionStoreEntry {
  if (entry.custom !== undefined) return entry.custom.data as SessionStoreEntry;
  const { [LINE]: rest, ...message } = entry.message ?? {};
  return { ...(rest as SessionStoreEntry), message };
}

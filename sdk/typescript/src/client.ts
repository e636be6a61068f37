/** The client. */

import { Documents } from "./documents.js";
import { Http } from "./http.js";
import { newKey, path, RETRIES, type QueryValue, type Retries } from "./requests.js";
import { Session, watchParams, type WatchOptions } from "./session.js";
import type { Json, SearchResult, SessionMeta, Status } from "./types.js";
import { Watch } from "./watch.js";

const DEFAULT_URL = "http://127.0.0.1:7717";
const DEFAULT_TIMEOUT = 30_000;
const DEFAULT_IDLE_EXIT = 60;

export interface BoughOptions {
  /** By default `BOUGH_SERVER` of the environment, then this machine's own server. */
  url?: string;
  /** By default `BOUGH_TOKEN` of the environment. */
  token?: string;
  /** Milliseconds that one request may take. */
  timeout?: number;
  retries?: Partial<Retries>;
  /** Replaces `fetch`, for tests and for programs with a transport of their own. */
  fetch?: typeof fetch;
}

export interface LocalOptions extends Omit<BoughOptions, "url" | "token" | "fetch"> {
  /** The server ends so many seconds after its last client. */
  idleExit?: number;
}

export interface SessionOptions {
  title?: string;
  description?: string;
  metadata?: Json;
}

export interface ListOptions {
  status?: Status;
  metadata?: Json;
  idPrefix?: string;
  query?: string;
  order?: string;
  archived?: "exclude" | "include" | "only";
  pageSize?: number;
}

/**
 * A client of a Bough server. Keep one for the whole program. Requests that fail on the way are sent again, and no repetition
 * stores anything twice.
 *
 * ```ts
 * const bough = new Bough();
 * const session = await bough.create({ title: "Weather" });
 * await session.append("Will it rain?");
 * ```
 */
export class Bough {
  readonly #http: Http;

  constructor(options: BoughOptions = {}) {
    this.#http = new Http({
      url: (options.url ?? environment("BOUGH_SERVER") ?? DEFAULT_URL).replace(/\/+$/, ""),
      token: options.token ?? environment("BOUGH_TOKEN"),
      timeout: options.timeout ?? DEFAULT_TIMEOUT,
      retries: { ...RETRIES, ...options.retries },
      // Called as a method of something else, a browser's `fetch` refuses.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    });
  }

  /**
   * A client of a server on a data directory of this machine. The program `bough` is started at the first request, and again when
   * it is needed; all programs that name the same directory share it. Not for browsers.
   */
  static local(folder: string, options: LocalOptions = {}): Bough {
    const { idleExit = DEFAULT_IDLE_EXIT, ...others } = options;
    if (!(idleExit >= 1)) throw new RangeError("idleExit must be at least 1 second");
    const local = import("#local").then(({ localFetch }) => localFetch(folder, idleExit));
    // The first request reports a failure.
    local.catch(() => undefined);
    return new Bough({ ...others, url: "http://localhost", fetch: async (input, init) => (await local)(input, init) });
  }

  /** Creates a session with an id that the server draws. */
  async create(options: SessionOptions = {}): Promise<Session> {
    const answer = await this.#http.call<{ session_id: string }>("POST", path("sessions"), { body: options, key: newKey() });
    return new Session(this.#http, answer.session_id);
  }

  /** Makes sure that a session with this id exists; the options count only when it is created. */
  async ensure(sessionId: string, options: SessionOptions = {}): Promise<Session> {
    await this.#http.call("PUT", path("sessions", sessionId), { body: options });
    return new Session(this.#http, sessionId);
  }

  /** Names a session, without asking whether it exists. */
  session(sessionId: string): Session {
    return new Session(this.#http, sessionId);
  }

  /** Names a scope of documents by key, without asking whether it has any. */
  documents(scope: string): Documents {
    return new Documents(this.#http, scope);
  }

  /** The sessions, the most recently changed first. Pages are read as they are needed. */
  list(options: ListOptions = {}): AsyncGenerator<SessionMeta, void> {
    return this.#http.pages<SessionMeta>(path("sessions"), "sessions", {
      status: options.status,
      metadata: options.metadata,
      id_prefix: options.idPrefix,
      query: options.query,
      order: options.order,
      archived: options.archived,
      limit: options.pageSize,
    });
  }

  /** Searches everything that was said: words, "a phrase", -not, and filters such as `role:user` or `after:3d`. */
  search(query: string, options: { metadata?: Json; limit?: number; cursor?: string; by_session?: boolean } = {}): Promise<SearchResult> {
    return this.#http.call<SearchResult>("GET", path("search"), { params: { query, ...options } });
  }

  /** Follows all sessions: an endless iterator of events that goes on over broken connections and restarts. */
  watch(options: WatchOptions & { metadata?: Json } = {}): Watch {
    const params: { [name: string]: QueryValue } = { ...watchParams(options), metadata: options.metadata };
    return new Watch(this.#http, path("events"), params, undefined);
  }

  /** Brings a deleted session back. */
  async undelete(sessionId: string): Promise<Session> {
    await this.#http.call("POST", path("trash", sessionId, "undelete"), { body: {}, key: newKey() });
    return new Session(this.#http, sessionId);
  }

  /**
   * Sends any request of the API, such as `send("GET", "/v1/search/status")`, and returns the JSON of the answer. It is sent again
   * after a broken connection, so a write needs ids of its own or an idempotency `key`.
   */
  send<T = unknown>(
    method: string,
    path: string,
    options: { params?: { [name: string]: QueryValue }; body?: object; key?: string } = {},
  ): Promise<T> {
    return this.#http.call<T>(method, path, options);
  }
}

/** A variable of the environment, where there is one: browsers have none. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: { [name: string]: string | undefined } } };
  return process?.env?.[name];
}

/** A feed that goes on over broken connections and restarts. */

import { ApiError, ConnectionFailed } from "./errors.js";
import type { Http } from "./http.js";
import { pauseAfter, type QueryValue } from "./requests.js";
import { type ServerSentEvent, SseDecoder } from "./sse.js";
import { sleep } from "./time.js";
import type { Event, Json } from "./types.js";

/** So many attempts in a row without an event end a watch. */
const FAILURES_MAX = 30;
/** The server says at least this often that a stream lives, in milliseconds; a silent one is dead. */
const SILENCE_MAX = 60_000;

/**
 * An endless iterator of events. Made by `watch` of a session or of the client. `break` out of the loop, or `close`, ends it.
 */
export class Watch implements AsyncIterableIterator<Event> {
  /** The position of the last event that was taken: a later watch goes on behind it. */
  cursor: string | undefined;
  readonly #http: Http;
  readonly #path: string;
  readonly #params: { [name: string]: QueryValue };
  readonly #sessionId: string | undefined;
  readonly #closing = new AbortController();
  readonly #events: AsyncGenerator<Event, void>;
  #startedAt: Promise<string> | undefined;

  constructor(http: Http, path: string, params: { [name: string]: QueryValue }, sessionId: string | undefined) {
    this.#http = http;
    this.#path = path;
    this.#params = params;
    this.#sessionId = sessionId;
    this.#events = this.#run();
  }

  /** Waits until the feed is open: everything that happens from now on will be heard. */
  async ready(): Promise<this> {
    this.#startedAt ??= this.#position();
    await this.#startedAt;
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Event, void>> {
    return this.#events.next();
  }

  async return(): Promise<IteratorResult<Event, void>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Closes the connection. */
  close(): void {
    this.#closing.abort();
  }

  /** Asks where the feed is now, so that a connection that breaks before its first event can be resumed. */
  async #position(): Promise<string> {
    const after = this.#params["after"];
    if (typeof after === "string") return after;
    const params = { session_id: this.#sessionId, limit: 1 };
    const answer = await this.#http.call<{ next: string }>("GET", "/v1/watch", { params });
    return answer.next;
  }

  async *#run(): AsyncGenerator<Event, void> {
    await this.ready();
    for (let failures = 0; !this.#closing.signal.aborted; ) {
      let cause: unknown;
      try {
        for await (const event of this.#connection()) {
          failures = 0;
          yield event;
        }
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        if (error instanceof ApiError && !error.isTransient) throw error;
        cause = error;
      }
      failures += 1;
      if (failures >= FAILURES_MAX) {
        throw new ConnectionFailed(`GET ${this.#path}: the stream could not be opened again`, { cause });
      }
      await sleep(pauseAfter(this.#http.retries, failures), this.#closing.signal);
    }
  }

  /** The events of one connection; it ends when the server ends the stream. */
  async *#connection(): AsyncGenerator<Event, void> {
    const params = { ...this.#params, after: this.cursor ?? (await this.#startedAt) };
    const silence = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, silence.signal]);
    const body = await this.#http.stream(this.#path, params, signal);
    const decoder = new SseDecoder();
    const reader = body.getReader();
    try {
      for (;;) {
        const timer = setTimeout(() => silence.abort(), SILENCE_MAX);
        const { done, value } = await reader.read().finally(() => clearTimeout(timer));
        if (done) return;
        for (const sent of decoder.feed(value)) {
          // Set before the event is given away: whoever takes it may stop there.
          if (sent.id !== "") this.cursor = sent.id;
          yield eventOf(sent);
        }
        if (decoder.lastId !== "") this.cursor = decoder.lastId;
      }
    } finally {
      // The connection may be broken already; then there is nothing to cancel.
      await reader.cancel().catch(() => undefined);
    }
  }
}

function eventOf(sent: ServerSentEvent): Event {
  const data = JSON.parse(sent.data) as Json;
  const payload = typeof data["payload"] === "object" && data["payload"] !== null ? (data["payload"] as Json) : data;
  return { type: sent.name, cursor: sent.id, data: payload };
}

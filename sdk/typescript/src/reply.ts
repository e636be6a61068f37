/** A message that is written while it is stored. */

import { BoughError, Conflict } from "./errors.js";
import type { Http } from "./http.js";
import { path } from "./requests.js";
import { sleep } from "./time.js";
import type { DeltaKind, Message, StopReason, Usage } from "./types.js";

/** A writer that is further ahead than this many characters waits for the server. */
const CHARACTERS_WAITING_MAX = 256 * 1024;

interface Delta {
  block: number;
  kind: DeltaKind;
  text: string;
}

/** How a reply ends. */
export interface ReplyEnd {
  stopReason?: StopReason;
  usage?: Usage;
  model?: string;
  error?: string;
}

/** The entry that a reply is written to. */
export interface ReplyBegin {
  entry_id: string;
  message: Message;
  [name: string]: unknown;
}

/**
 * A streaming reply: readers see its text as it is written. Made by `stream` of a session. What is written within the join
 * interval is sent together, so that a reply of thousands of tokens is a few requests a second.
 */
export class Reply {
  readonly entryId: string;
  /** The revision of the message that is durable. */
  revision = 0;
  readonly #http: Http;
  readonly #sessionId: string;
  readonly #begin: ReplyBegin;
  readonly #interval: number;
  readonly #waiting: Delta[] = [];
  readonly #end: ReplyEnd = {};
  #characters = 0;
  #block: { index: number; kind: DeltaKind | undefined };
  #sending: Promise<void> | undefined;
  #failure: unknown;
  #closing = new AbortController();

  constructor(http: Http, sessionId: string, begin: ReplyBegin, interval: number) {
    this.#http = http;
    this.#sessionId = sessionId;
    this.#begin = begin;
    this.#interval = interval;
    this.entryId = begin.entry_id;
    const content = begin.message["content"] ?? begin.message["parts"];
    const blocks = typeof content === "string" ? 1 : Array.isArray(content) ? content.length : 0;
    this.#block = { index: blocks - 1, kind: undefined };
  }

  /** Adds to what the model says. Waits only while the server is far behind. */
  text(text: string): Promise<void> {
    return this.#add("text", text);
  }

  /** Adds to what the model thinks. */
  thinking(text: string): Promise<void> {
    return this.#add("thinking", text);
  }

  /** Says how the reply ends. It is sent when the writer ends; calling it again adds to it. */
  finish(end: ReplyEnd): void {
    Object.assign(this.#end, end);
  }

  /** Begins the message, lets `write` write it, and finishes it, also when `write` throws. */
  async run<T>(write: (reply: this) => T | Promise<T>): Promise<T> {
    const place = path("sessions", this.#sessionId, "entries");
    const begun = await this.#http.call<{ revision?: number }>("POST", place, { body: this.#begin });
    this.revision = begun.revision ?? 0;
    let answer: T;
    try {
      answer = await write(this);
    } catch (error) {
      this.finish({ stopReason: "error", error: error instanceof Error ? error.message : String(error) });
      // What went wrong in the writer is what the caller has to know.
      await this.#close().catch(() => undefined);
      throw error;
    }
    await this.#close();
    return answer;
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    await this.#sending;
    const failure = this.#failure;
    if (failure !== undefined) this.finish({ stopReason: "error", error: String(failure) });
    const place = path("sessions", this.#sessionId, "entries", this.entryId, "finish");
    const { stopReason, ...end } = this.#end;
    const body = { stop_reason: stopReason ?? "end", ...end };
    try {
      const finished = await this.#http.call<{ revision: number }>("POST", place, { body });
      this.revision = finished.revision;
    } catch (error) {
      if (!this.#hasArrived(error)) throw error;
      this.revision += 1;
    }
    if (failure !== undefined) throw failure;
  }

  async #add(kind: DeltaKind, text: string): Promise<void> {
    if (text === "") return;
    if (kind !== this.#block.kind) this.#block = { index: this.#block.index + 1, kind };
    this.#queue({ block: this.#block.index, kind, text });
    this.#sending ??= this.#send();
    while (this.#characters > CHARACTERS_WAITING_MAX && this.#sending !== undefined) await this.#sending;
    if (this.#failure !== undefined) throw this.#failure;
  }

  #queue(delta: Delta): void {
    this.#characters += delta.text.length;
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.block === delta.block) last.text += delta.text;
    else this.#waiting.push(delta);
  }

  /** Sends what waits, one request at a time, until nothing does. */
  async #send(): Promise<void> {
    try {
      for (let delta = this.#take(); delta !== undefined; delta = this.#take()) {
        await this.#sendOne(delta);
        await sleep(this.#interval, this.#closing.signal);
      }
    } catch (error) {
      this.#failure = error instanceof BoughError ? error : new BoughError(String(error), { cause: error });
      this.#waiting.length = 0;
      this.#characters = 0;
    } finally {
      this.#sending = undefined;
    }
  }

  #take(): Delta | undefined {
    const delta = this.#waiting.shift();
    this.#characters -= delta?.text.length ?? 0;
    return delta;
  }

  /** Only this reply writes the message, so its revision tells a delta that arrived from one that did not. */
  async #sendOne(delta: Delta): Promise<void> {
    const place = path("sessions", this.#sessionId, "entries", this.entryId, "delta");
    const body = { ...delta, expected_revision: this.revision };
    try {
      const answer = await this.#http.call<{ revision: number }>("POST", place, { body });
      this.revision = answer.revision;
    } catch (error) {
      if (!this.#hasArrived(error)) throw error;
      this.revision += 1;
    }
  }

  /** Whether an earlier attempt arrived and its answer was lost: the message is then one revision further. */
  #hasArrived(error: unknown): boolean {
    return error instanceof Conflict && error.data["revision"] === this.revision + 1;
  }
}

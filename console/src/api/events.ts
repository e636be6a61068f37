// Server-sent events over fetch: unlike EventSource it says why a stream was refused, and it notices a connection that is dead.

import { ApiError, reach, refusal } from "./client";
import { connection } from "./connection";

export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/** Cuts the text of a stream into events. Comments and retry times are left out. */
export class EventParser {
  private rest = "";
  private id = "";
  private name = "";
  private data: string[] = [];

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event !== undefined) {
        events.push(event);
      }
    }
    return events;
  }

  private line(line: string): ServerEvent | undefined {
    if (line === "") {
      return this.finish();
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") {
      this.id = value;
    } else if (field === "event") {
      this.name = value;
    } else if (field === "data") {
      this.data.push(value);
    }
    return undefined;
  }

  private finish(): ServerEvent | undefined {
    const event = { id: this.id, name: this.name || "message", data: this.data.join("\n") };
    const hasData = this.data.length > 0;
    this.name = "";
    this.data = [];
    return hasData ? event : undefined;
  }
}

export interface StreamHandlers {
  /** The stream begins, or begins anew because its place is not known any more: read everything first. */
  onFresh: () => void;
  onEvent: (event: ServerEvent) => void;
  /** The stream was refused in a way that trying again does not change. */
  onRefused: (error: ApiError) => void;
}

/** A stream that says nothing for this long is dead; the server sends a comment every 15 seconds. */
const SILENCE_MS = 40_000;
const RETRY_FIRST_MS = 300;
const RETRY_MAX_MS = 5_000;
/** A page that nobody looks at gives its connection back after this time: browsers allow six to one server. */
const HIDDEN_MS = 60_000;

/** Follows a stream until it is closed, and goes on where it stopped whenever the connection breaks. */
export class EventStream {
  private isClosed = false;
  private abort = new AbortController();
  private wake: () => void = () => {};
  private hiddenTimer = 0;
  private readonly forget: () => void;

  /** Begins behind the event that is named, or with what is there when none is. */
  constructor(
    private readonly path: string,
    private readonly handlers: StreamHandlers,
    private lastId = "",
  ) {
    this.forget = connection.subscribe(() => connection.get() === "live" && this.wake());
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.onOnline);
    void this.run();
  }

  /** Closes it; another stream goes on behind the event that is returned. */
  close(): string {
    this.isClosed = true;
    this.forget();
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.onOnline);
    window.clearTimeout(this.hiddenTimer);
    this.abort.abort();
    this.wake();
    return this.lastId;
  }

  /** Drops the place in the stream and begins anew. */
  restart(): void {
    this.lastId = "";
    this.abort.abort();
    this.wake();
  }

  private readonly onOnline = () => this.wake();

  private readonly onVisibility = () => {
    window.clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = window.setTimeout(() => this.abort.abort(), HIDDEN_MS);
    } else {
      this.wake();
    }
  };

  private async run(): Promise<void> {
    let pause = RETRY_FIRST_MS;
    while (!this.isClosed) {
      if (document.hidden && this.lastId !== "" && this.abort.signal.aborted) {
        await this.waitAtMost(undefined);
        continue;
      }
      try {
        await this.once(() => (pause = RETRY_FIRST_MS));
      } catch (error) {
        if (error instanceof ApiError && !error.isTransient && !this.isClosed) {
          this.handlers.onRefused(error);
          return;
        }
      }
      if (this.isClosed) {
        return;
      }
      if (!document.hidden) {
        connection.set("lost");
      }
      await this.waitAtMost(pause);
      pause = Math.min(pause * 2, RETRY_MAX_MS);
    }
  }

  /** One connection, until it ends. */
  private async once(onOpen: () => void): Promise<void> {
    this.abort = new AbortController();
    const headers = new Headers({ accept: "text/event-stream" });
    const isFresh = this.lastId === "";
    if (!isFresh) {
      headers.set("last-event-id", this.lastId);
    }
    const response = await reach(this.path, { headers, signal: this.abort.signal, credentials: "same-origin" });
    if (!response.ok || response.body === null) {
      throw await refusal(response);
    }
    onOpen();
    connection.set("live");
    if (isFresh) {
      this.handlers.onFresh();
    }
    await this.read(response.body);
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const timer = window.setTimeout(() => this.abort.abort(), SILENCE_MS);
      const piece = await reader.read().finally(() => window.clearTimeout(timer));
      if (piece.done || this.isClosed) {
        return;
      }
      for (const event of parser.push(decoder.decode(piece.value, { stream: true }))) {
        this.lastId = event.id;
        this.handlers.onEvent(event);
      }
    }
  }

  private waitAtMost(ms: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? 0 : window.setTimeout(resolve, ms);
      this.wake = () => {
        window.clearTimeout(timer);
        resolve();
      };
    });
  }
}

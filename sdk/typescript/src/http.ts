/** The one transport: sends requests, repeats them where that is safe, and turns refusals into errors. */

import { ApiError, ConnectionFailed, errorOf, StartFailed } from "./errors.js";
import { pauseAfter, query, type QueryValue, type Retries } from "./requests.js";
import { sleep } from "./time.js";

export interface Call {
  params?: { [name: string]: QueryValue };
  body?: object;
  /** An `Idempotency-Key`. */
  key?: string;
}

export interface HttpOptions {
  url: string;
  token: string | undefined;
  /** Milliseconds that one attempt may take. */
  timeout: number;
  retries: Retries;
  fetch: typeof fetch;
}

export class Http {
  readonly retries: Retries;
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.retries = options.retries;
  }

  /**
   * Sends a request and returns the JSON of the answer. The request may reach the server more than once, so it must be
   * one that can be repeated: a read, a write with ids or preconditions of its own, or one with an idempotency key.
   */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#once<T>(method, path, call);
      } catch (error) {
        // The server of this machine cannot be started: nothing to wait for.
        if (error instanceof StartFailed) throw error;
        const isLast = attempt >= this.retries.attempts;
        if (error instanceof ApiError && (isLast || !error.isTransient)) throw error;
        if (!(error instanceof ApiError) && isLast) {
          throw new ConnectionFailed(`${method} ${path}: ${words(error)}`, { cause: error });
        }
        const retryAfter = error instanceof ApiError ? error.retryAfter : undefined;
        await sleep(pauseAfter(this.retries, attempt, retryAfter));
      }
    }
  }

  /** The items of a list, page after page, each page read when it is needed. */
  async *pages<T>(path: string, member: string, params: { [name: string]: QueryValue }): AsyncGenerator<T, void> {
    let cursor: string | undefined;
    do {
      const page = await this.call<{ [name: string]: unknown }>("GET", path, { params: { ...params, cursor } });
      yield* page[member] as T[];
      cursor = page["next_cursor"] as string | undefined;
    } while (cursor !== undefined);
  }

  /** Opens a stream of server-sent events once; who reads it decides about reconnecting. */
  async stream(path: string, params: { [name: string]: QueryValue }, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers = { ...this.#headers(), accept: "text/event-stream" };
    const response = await this.#options.fetch(this.#address(path, params), { headers, signal });
    if (!response.ok) throw await errorOf(response);
    if (response.body === null) throw new ConnectionFailed(`GET ${path}: the answer has no body`);
    return response.body;
  }

  async #once<T>(method: string, path: string, { params, body, key }: Call): Promise<T> {
    const headers = this.#headers();
    if (key !== undefined) headers["idempotency-key"] = key;
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(this.#options.timeout) };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    const response = await this.#options.fetch(this.#address(path, params ?? {}), init);
    if (!response.ok) throw await errorOf(response);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  #address(path: string, params: { [name: string]: QueryValue }): string {
    return this.#options.url + path + query(params);
  }

  #headers(): { [name: string]: string } {
    const { token } = this.#options;
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }
}

/** What `fetch` says of a failure is mostly in its cause. */
function words(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

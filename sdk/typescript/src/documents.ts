/** Documents by key: state of an application or of a user, and long-term memory. */

import { NotFound } from "./errors.js";
import type { Http } from "./http.js";
import { newKey, path } from "./requests.js";
import type { Document, DocumentRemoval, NewDocument, WrittenDocuments } from "./types.js";

/** How many keys are asked for at once. */
const KEYS_AT_ONCE = 500;

/** A page of documents. */
interface Page {
  documents: Document[];
  next_cursor?: string;
}

/**
 * The documents of a scope: any JSON by key. Made by `documents` of the client; making one costs no request.
 *
 * A scope begins with its first document. Its documents are in no list of sessions, in no search and in no event.
 */
export class Documents {
  readonly scope: string;
  readonly #http: Http;

  constructor(http: Http, scope: string) {
    this.#http = http;
    this.scope = scope;
  }

  /**
   * Puts a document and returns its version. With `expectedVersion`, only if the document has this version, or with 0 only if
   * there is none; otherwise it throws `DocumentConflict`.
   */
  async put(key: string, value: unknown, options: { expectedVersion?: number } = {}): Promise<number> {
    const document: NewDocument = { key, value };
    if (options.expectedVersion !== undefined) document.expected_version = options.expectedVersion;
    const { documents } = await this.write({ put: [document] });
    return documents[0]?.version ?? 0;
  }

  /** Returns a document, or `undefined`. */
  async get(key: string): Promise<Document | undefined> {
    // In a path these are steps.
    if (key === "." || key === "..") return (await this.getMany([key]))[0];
    try {
      return await this.#http.call<Document>("GET", path("kv", this.scope, key));
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  /** Returns the documents with these keys, in this order; those that do not exist are left out. */
  async getMany(keys: Iterable<string>): Promise<Document[]> {
    const wanted = [...keys];
    const found: Document[] = [];
    for (let first = 0; first < wanted.length; first += KEYS_AT_ONCE) {
      const asked = { scope: this.scope, keys: wanted.slice(first, first + KEYS_AT_ONCE), limit: KEYS_AT_ONCE };
      let cursor: string | undefined;
      do {
        // In a body rather than in a query: keys may be many, and of any spelling.
        const page: Page = await this.#http.call<Page>("POST", path("call", "session::kv::list"), { body: { ...asked, cursor } });
        found.push(...page.documents);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
    }
    return found;
  }

  /** The documents whose keys begin with `prefix`, in the order of the keys; with `keysOnly`, without their values. */
  list(options: { prefix?: string; keysOnly?: boolean; pageSize?: number } = {}): AsyncGenerator<Document, void> {
    const params = { prefix: options.prefix, keys_only: options.keysOnly, limit: options.pageSize };
    return this.#http.pages<Document>(path("kv", this.scope), "documents", params);
  }

  /**
   * Puts and deletes documents in one durable commit, all of them or none. Each may have an `expected_version`; where one is
   * not met, nothing is written and `DocumentConflict` is thrown.
   */
  write(changes: { put?: NewDocument[]; delete?: DocumentRemoval[] }): Promise<WrittenDocuments> {
    // What is `undefined` is not JSON; a document says `null` then.
    const put = changes.put?.map((document) => ({ ...document, value: document.value ?? null }));
    const body = { put, delete: changes.delete };
    return this.#http.call<WrittenDocuments>("POST", path("kv", this.scope), { body, key: newKey() });
  }

  /** Deletes a document. Returns whether it was there. */
  async delete(key: string, options: { expectedVersion?: number } = {}): Promise<boolean> {
    const removal: DocumentRemoval = { key };
    if (options.expectedVersion !== undefined) removal.expected_version = options.expectedVersion;
    const { deleted } = await this.write({ delete: [removal] });
    return deleted > 0;
  }
}

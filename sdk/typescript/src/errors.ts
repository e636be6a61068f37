/** Errors, by what a program can do about them. */

import type { Json } from "./types.js";

/** Statuses of requests that may succeed when they are sent again as they are. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([423, 429, 502, 503, 504]);

/** The base of every error that this package throws by itself. */
export class BoughError extends Error {
  override readonly name: string = "BoughError";
}

/** The server could not be reached, or the connection broke and repeating did not help. */
export class ConnectionFailed extends BoughError {
  override readonly name: string = "ConnectionFailed";
}

/** The program `bough` could not be started, or does not answer. */
export class StartFailed extends BoughError {
  override readonly name: string = "StartFailed";
}

/** The server refused a request. `code` is stable and meant for programs; `detail` and `hint` are for people. */
export class ApiError extends BoughError {
  override readonly name: string = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string;
  /** The fields that are wrong, where the server names them. */
  readonly errors: Json[];
  readonly data: Json;
  /** The seconds after which the server wants to be asked again. */
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Json, retryAfter?: number) {
    const text = (name: string): string => (typeof problem[name] === "string" ? problem[name] : "");
    const code = text("code") || `http/${status}`;
    const detail = text("detail") || text("title");
    super([`${code}: ${detail}.`, text("hint")].filter((part) => part !== "").join(" "));
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.hint = text("hint");
    this.errors = Array.isArray(problem["errors"]) ? (problem["errors"] as Json[]) : [];
    this.data = isObject(problem["data"]) ? problem["data"] : {};
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed when it is sent again. */
  get isTransient(): boolean {
    return TRANSIENT_STATUSES.has(this.status);
  }
}

/** The request is wrong as it is: 400, 413, 415 and 422. */
export class InvalidRequest extends ApiError {
  override readonly name = "InvalidRequest";
}

/** The token is missing, unknown, or does not allow this: 401 and 403. */
export class Forbidden extends ApiError {
  override readonly name = "Forbidden";
}

/** There is no such session, entry or document: 404. */
export class NotFound extends ApiError {
  override readonly name = "NotFound";
}

/** Something changed since the caller looked: 409 and 412. */
export class Conflict extends ApiError {
  override readonly name: string = "Conflict";
}

/** The active leaf is not the one that `expectedLeaf` named; `activeLeaf` is what it is now. */
export class LeafConflict extends Conflict {
  override readonly name = "LeafConflict";

  /** The entry at the end of the active path, or `null` for a session without entries. */
  get activeLeaf(): string | null {
    const leaf = this.data["active_leaf"];
    return typeof leaf === "string" && leaf !== "" ? leaf : null;
  }
}

/** A document does not have the version that `expectedVersion` named; `version` is what it has now. */
export class DocumentConflict extends Conflict {
  override readonly name = "DocumentConflict";

  /** The key of the document. */
  get key(): string {
    return String(this.data["key"] ?? "");
  }

  /** Its version, or 0 when there is no such document. */
  get version(): number {
    return Number(this.data["version"] ?? 0);
  }
}

/** The server is too busy, starts, or another process holds the session: 423, 429, 502, 503 and 504. */
export class Unavailable extends ApiError {
  override readonly name = "Unavailable";
}

type ErrorClass = new (status: number, problem: Json, retryAfter?: number) => ApiError;

const BY_CODE: ReadonlyMap<unknown, ErrorClass> = new Map<unknown, ErrorClass>([
  ["session/leaf_conflict", LeafConflict],
  ["session/document_conflict", DocumentConflict],
]);

const BY_STATUS: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  ...[400, 413, 415, 422].map((status): [number, ErrorClass] => [status, InvalidRequest]),
  ...[401, 403].map((status): [number, ErrorClass] => [status, Forbidden]),
  [404, NotFound],
  ...[409, 412].map((status): [number, ErrorClass] => [status, Conflict]),
  ...[...TRANSIENT_STATUSES].map((status): [number, ErrorClass] => [status, Unavailable]),
]);

/** Returns the error that a response describes, and reads its body. */
export async function errorOf(response: Response): Promise<ApiError> {
  const problem = await problemOf(response);
  const found = BY_CODE.get(problem["code"]) ?? BY_STATUS.get(response.status);
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new (found ?? ApiError)(response.status, problem, Number.isFinite(seconds) ? seconds : undefined);
}

async function problemOf(response: Response): Promise<Json> {
  const body: unknown = await response.json().catch(() => null);
  return isObject(body) ? body : { title: response.statusText };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What requests are made of: paths, queries, bodies and ids. Nothing here does I/O. */

import type { Message } from "./types.js";

/** How often a request is sent, and how long to wait between the attempts, in milliseconds. */
export interface Retries {
  attempts: number;
  /** The pause doubles from the first to the longest, and is spread at random. */
  firstPause: number;
  longestPause: number;
}

export const RETRIES: Retries = { attempts: 6, firstPause: 100, longestPause: 2000 };

/** The milliseconds to wait after the failed attempt with this number, counted from 1. */
export function pauseAfter(retries: Retries, attempt: number, retryAfter?: number): number {
  const doubled = retries.firstPause * 2 ** Math.min(attempt - 1, 16);
  const pause = Math.min(doubled, retries.longestPause) * (0.5 + Math.random() / 2);
  return Math.max((retryAfter ?? 0) * 1000, pause);
}

/** Joins path segments below `/v1`, percent-encoded. */
export function path(...parts: string[]): string {
  return `/v1/${parts.map(encodeSegment).join("/")}`;
}

/** `.` and `..` would be taken for steps in the path. */
function encodeSegment(part: string): string {
  const encoded = encodeURIComponent(part);
  return /^\.{1,2}$/.test(encoded) ? encoded.replaceAll(".", "%2E") : encoded;
}

export type QueryValue = string | number | boolean | readonly string[] | object | null | undefined;

/** A query: lists repeat their parameter, objects are JSON, what is missing is left out. */
export function query(values: { [name: string]: QueryValue }): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) value.forEach((item: string) => pairs.append(name, item));
    else if (typeof value === "object") pairs.append(name, JSON.stringify(value));
    else pairs.append(name, String(value));
  }
  const text = pairs.toString();
  return text === "" ? "" : `?${text}`;
}

/** Draws an id that nobody else has. */
export function newId(prefix: string): string {
  return `${prefix}_${newKey()}`;
}

/** Draws an `Idempotency-Key`. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns a message; a text is a message of the user. */
export function asMessage(message: string | Message): Message {
  return typeof message === "string" ? { role: "user", content: message } : message;
}

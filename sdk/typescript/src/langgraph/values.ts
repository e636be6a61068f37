/**
 * Values of channels as JSON.
 *
 * A value is `{"j": …}` when JSON says it exactly, and otherwise `{"t": …, "b": …}`: the framework's serializer, in base64.
 */

import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

import { isPlainObject } from "../canonical.js";

/** JSON that is nested deeper is left to the serializer; the server has a bound too. */
const DEPTH_MAX = 40;

/** What the serializer wrote. */
export interface Opaque {
  t: string;
  b: string;
}

/** Whether a value comes back exactly from JSON: no classes, nothing that is `undefined`, no halves of surrogate pairs. */
export function isPlainJson(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === "boolean") return true;
  if (typeof value === "string") return isWellFormed(value);
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || depth >= DEPTH_MAX) return false;
  if (Array.isArray(value)) return Array.from(value).every((item) => isPlainJson(item, depth + 1));
  return isPlainObject(value) && Object.entries(value).every(([name, member]) => isWellFormed(name) && isPlainJson(member, depth + 1));
}

/** A text that can be sent: half of a surrogate pair cannot, and is replaced. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD");
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** A value as the serializer writes it. */
export async function opaque(value: unknown, serde: SerializerProtocol): Promise<Opaque> {
  const [kind, bytes] = await serde.dumpsTyped(value);
  return { t: kind, b: Buffer.from(bytes).toString("base64") };
}

/** The value that `opaque` was given. */
export function fromOpaque(stored: Opaque, serde: SerializerProtocol): Promise<unknown> {
  return serde.loadsTyped(stored.t, Uint8Array.from(Buffer.from(stored.b, "base64")));
}

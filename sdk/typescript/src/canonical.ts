/** Texts by which values are compared. */

import type { Json } from "./types.js";

/** JSON with the members of objects in alphabetical order, so that equal values are equal texts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (!isPlainObject(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** Whether a value is an object of no class. */
export function isPlainObject(value: unknown): value is Json {
  if (typeof value !== "object" || value === null || Object.getOwnPropertySymbols(value).length > 0) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What the adapters of frameworks share. */

import { Bough } from "./client.js";
import { NotFound } from "./errors.js";

/** What an adapter is made with: the address of a server, a client, or nothing for the usual server. */
export type UrlOrClient = string | Bough | undefined;

/** The client of an adapter. */
export function clientOf(urlOrClient: UrlOrClient): Bough {
  if (urlOrClient instanceof Bough) return urlOrClient;
  return new Bough(urlOrClient === undefined ? {} : { url: urlOrClient });
}

/** What a read gives, or something else when there is no such session. */
export async function orWhenMissing<T, U>(read: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof NotFound) return otherwise;
    throw error;
  }
}

/** Everything that an iterator gives, at most so many. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = [];
  if (limit <= 0) return found;
  for await (const item of items) {
    found.push(item);
    if (found.length >= limit) break;
  }
  return found;
}

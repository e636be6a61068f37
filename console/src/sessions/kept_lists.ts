// Lists that the reader left, so that the way back leads to the same place.

import { type SessionFilters, sessionsHref } from "../router";
import { SessionList } from "./list";

/** Lists that are kept: more than one, because the way back may lead over several searches. */
const KEPT_MAX = 3;

/** By their addresses, the one that was left last at the end. */
const kept = new Map<string, SessionList>();

/** The list of these filters as it was left, or a new one. */
export function takeList(filters: SessionFilters): SessionList {
  const address = sessionsHref(filters);
  const list = kept.get(address) ?? new SessionList(filters);
  kept.delete(address);
  return list;
}

export function keepList(filters: SessionFilters, list: SessionList): void {
  const address = sessionsHref(filters);
  kept.delete(address);
  kept.set(address, list);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) {
    kept.delete(oldest);
  }
}

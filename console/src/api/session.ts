import { getJson, sessionPath } from "./client";
import type { SessionDetails, SessionMeta } from "./types";

export interface SessionAnswer {
  meta: SessionMeta;
  details: SessionDetails;
  active_leaf?: string;
}

/** What a session says of itself now. */
export function readSession(session: string, signal?: AbortSignal): Promise<SessionAnswer> {
  return getJson<SessionAnswer>(sessionPath(session), {}, signal);
}

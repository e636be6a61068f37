// What the server says of itself, in plain words and with units.

import type { HealthAnswer } from "../api/stats";
import { bytes, count, exactTime } from "../ui/format";
import type { Fact } from "./panels";

export function storeInWords({ kind, is_reachable, sessions, reopened_sessions, checkpoints, trouble }: HealthAnswer["store"]): Fact[] {
  const facts: Fact[] = [
    ["Kind", kind],
    ["Reachable", is_reachable ? "yes" : "no"],
    ["Sessions", count(sessions)],
  ];
  if (checkpoints != null) {
    facts.push(["Checkpointed", count(checkpoints.checkpointed)], ["Changed since their checkpoint", count(checkpoints.dirty)], ["Counted at", exactTime(checkpoints.measured_at)]);
    if (checkpoints.unreadable > 0) {
      facts.push(["With a checkpoint that cannot be read", count(checkpoints.unreadable)]);
    }
  }
  facts.push(["Reopened after a failed write", count(reopened_sessions)]);
  if (trouble != null) {
    facts.push(["Trouble", trouble]);
  }
  return facts;
}

const NOW: Record<string, string> = {
  subscribers: "Subscribers",
  http_connections: "HTTP connections",
  bus_connections: "Bus connections",
  bus_bindings: "Bus bindings",
  requests: "Requests being answered",
};

const SINCE_START: Record<string, string> = {
  events_streamed: "Events sent to subscribers",
  events_delivered: "Events sent over the bus",
  gaps: "Subscribers that fell behind",
  refused_requests: "Requests refused",
  limited_requests: "Requests over a limit",
  panics: "Requests that failed inside",
};

const LIMITS: Record<string, string> = {
  body_bytes: "Largest request",
  bus_message_bytes: "Largest message of the bus",
  connections: "Connections of a listener",
  requests: "Requests at once",
  streams: "Live streams",
  stream_bytes_per_token: "Held for slow readers of a token",
  request_timeout: "Time for a request",
  header_timeout: "Time for its headers",
  write_stall_timeout: "Time for a reader that takes nothing",
  heartbeat: "Sign of life on a quiet stream",
};

const STORE_LIMITS: Record<string, string> = {
  record_bytes: "Largest record",
  batch_records: "Records written together",
  batch_bytes: "Largest batch",
  message_bytes: "Largest message",
  session_id_bytes: "Longest session id",
  entry_id_bytes: "Longest entry id",
  metadata_bytes: "Largest metadata",
  listed_branches: "Branches listed of a session",
  streams_per_session: "Streams of a session",
  delta_bytes: "Largest delta",
};

export const storeLimitsInWords = (values: Record<string, unknown>) => inWords(values, STORE_LIMITS);
export const nowInWords = (values: Record<string, unknown>) => inWords(values, NOW);
export const sinceStartInWords = (values: Record<string, unknown>) => inWords(values, SINCE_START);
export const limitsInWords = (values: Record<string, unknown>) => inWords(values, LIMITS);

/** The members in the order of the table; those that it does not know come last, by their own names. */
function inWords(values: Record<string, unknown>, names: Record<string, string>): Fact[] {
  const known = Object.keys(names).filter((name) => values[name] != null);
  const others = Object.keys(values).filter((name) => !(name in names) && values[name] != null);
  return [...known, ...others].map((name) => [names[name] ?? spelledOut(name), valueInWords(name, values[name])]);
}

function spelledOut(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function valueInWords(name: string, value: unknown): string {
  if (typeof value === "number") {
    return /(^|_)bytes(_|$)/.test(name) ? bytes(value) : count(value);
  }
  // A span of time, such as `30s`.
  return typeof value === "string" ? value.replace(/^(\d+)m$/, "$1 min").replace(/^(\d+)(s|h|d)$/, "$1 $2") : JSON.stringify(value);
}

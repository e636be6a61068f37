// Addresses of the console's views. They live behind the `#`, so that the server never sees them.

import { dropEarly } from "./api/early";
import { Store } from "./ui/store";

export interface SessionFilters {
  text: string;
  status: string;
  agent: string;
  tool: string;
  /** `24h`, `7d`, `30d` or nothing. */
  since: string;
  /** `key=value`. */
  metadata: string;
  archived: boolean;
}

export const NO_FILTERS: SessionFilters = {
  text: "",
  status: "",
  agent: "",
  tool: "",
  since: "",
  metadata: "",
  archived: false,
};

/** What the usage view shows. */
export interface UsageQuery {
  /** `7d`, `30d`, `90d` or `all`. */
  since: string;
  of: "tokens" | "cost";
  by: "model" | "agent" | "project" | "session";
}

export type Route =
  | { view: "sessions"; filters: SessionFilters }
  | { view: "session"; session: string; entry: string | undefined }
  | { view: "tree" | "loops"; session: string }
  | { view: "compare"; session: string; left: string; right: string }
  | { view: "usage"; query: UsageQuery }
  | { view: "health" | "trash" }
  | { view: "unknown"; path: string };

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#/, ""), "?");
  const parts = path.split("/").filter((part) => part !== "").map(decode);
  const values = new URLSearchParams(query);
  const [view = "sessions", session, part] = parts;
  if (view === "sessions" && parts.length <= 1) {
    return { view, filters: readFilters(values) };
  }
  if (view === "sessions" && session !== undefined && parts.length === 2) {
    return { view: "session", session, entry: values.get("entry") ?? undefined };
  }
  if (view === "sessions" && session !== undefined && (part === "tree" || part === "loops") && parts.length === 3) {
    return { view: part, session };
  }
  if (view === "sessions" && session !== undefined && part === "compare" && parts.length === 3) {
    return { view: part, session, left: values.get("left") ?? "", right: values.get("right") ?? "" };
  }
  if (view === "usage" && parts.length === 1) {
    return { view, query: readUsageQuery(values) };
  }
  if ((view === "health" || view === "trash") && parts.length === 1) {
    return { view };
  }
  return { view: "unknown", path };
}

export function sessionsHref(filters: Partial<SessionFilters> = {}): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    if (value !== "" && value !== false) {
      values.set(name, value === true ? "yes" : String(value));
    }
  }
  const text = values.toString();
  return text === "" ? "#/sessions" : `#/sessions?${text}`;
}

export function sessionHref(session: string, entry?: string): string {
  const at = entry === undefined ? "" : `?entry=${encodeURIComponent(entry)}`;
  return `#/sessions/${encodeURIComponent(session)}${at}`;
}

export function treeHref(session: string): string {
  return `#/sessions/${encodeURIComponent(session)}/tree`;
}

/** Two branches of a session, each named by its end. */
export function compareHref(session: string, left: string, right: string): string {
  return `#/sessions/${encodeURIComponent(session)}/compare?${new URLSearchParams({ left, right }).toString()}`;
}

export function loopsHref(session: string): string {
  return `#/sessions/${encodeURIComponent(session)}/loops`;
}

export function usageHref({ since, of, by }: UsageQuery): string {
  return `#/usage?${new URLSearchParams({ since, of, by }).toString()}`;
}

/** The view that the address bar names. */
export const route = new Store<Route>(parseRoute(globalThis.location?.hash ?? ""));

let lastList = "#/sessions";

/** The list as it was looked at last, with its filters. */
export function listHref(): string {
  return lastList;
}

function follow(): void {
  const current = parseRoute(location.hash);
  if (current.view === "sessions") {
    lastList = sessionsHref(current.filters);
  }
  route.set(current);
}

export function startRouter(): void {
  follow();
  window.addEventListener("hashchange", () => {
    dropEarly();
    follow();
  });
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes the address without a new place in the history, such as while somebody types. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  follow();
}

function readFilters(values: URLSearchParams): SessionFilters {
  const text = (name: string) => values.get(name) ?? "";
  return {
    text: text("text"),
    status: text("status"),
    agent: text("agent"),
    tool: text("tool"),
    since: /^\d+[hd]$/.test(text("since")) ? text("since") : "",
    metadata: text("metadata"),
    archived: text("archived") === "yes",
  };
}

function readUsageQuery(values: URLSearchParams): UsageQuery {
  const one = <T extends string>(name: string, known: readonly [T, ...T[]]) => known.find((word) => word === values.get(name)) ?? known[0];
  return {
    since: one("since", ["30d", "7d", "90d", "all"]),
    of: one("of", ["tokens", "cost"]),
    by: one("by", ["model", "agent", "project", "session"]),
  };
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + 1)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

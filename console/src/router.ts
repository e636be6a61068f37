// Addresses of the console's views. They live behind the `#`, so that the server never sees them.

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

export type Route =
  | { view: "sessions"; filters: SessionFilters }
  | { view: "session"; session: string; entry: string | undefined }
  | { view: "tree"; session: string }
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
  if (view === "sessions" && session !== undefined && part === "tree" && parts.length === 3) {
    return { view: "tree", session };
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

/** The view that the address bar names. */
export const route = new Store<Route>(parseRoute(globalThis.location?.hash ?? ""));

export function startRouter(): void {
  window.addEventListener("hashchange", () => route.set(parseRoute(location.hash)));
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes the address without a new place in the history, such as while somebody types. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  route.set(parseRoute(location.hash));
}

function readFilters(values: URLSearchParams): SessionFilters {
  const text = (name: string) => values.get(name) ?? "";
  return {
    text: text("text"),
    status: text("status"),
    agent: text("agent"),
    tool: text("tool"),
    since: text("since"),
    metadata: text("metadata"),
    archived: text("archived") === "yes",
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

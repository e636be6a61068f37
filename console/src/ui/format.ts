// Numbers, times and names as people read them.

import type { SessionDetails, SessionMeta } from "../api/types";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const timeWithSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayOfUtc = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const fullDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** The whole time, in the reader's zone. */
export function exactTime(ms: number): string {
  return dateTime.format(ms);
}

/** `now`, `4 min`, `3 h`, `5 d`, then the date. */
export function ago(ms: number, now: number = Date.now()): string {
  const passed = now - ms;
  if (passed < MINUTE) {
    return "now";
  }
  if (passed < HOUR) {
    return `${Math.floor(passed / MINUTE)} min`;
  }
  if (passed < DAY) {
    return `${Math.floor(passed / HOUR)} h`;
  }
  if (passed < 7 * DAY) {
    return `${Math.floor(passed / DAY)} d`;
  }
  return shortDay(ms, now);
}

/** The same within a sentence: `just now`, `4 min ago`, `on Nov 3`. */
export function agoInWords(ms: number, now: number = Date.now()): string {
  const words = ago(ms, now);
  if (words === "now") {
    return "just now";
  }
  return now - ms < 7 * DAY ? `${words} ago` : `on ${words}`;
}

/** The time of day, with the date where it is not today's. */
export function clockTime(ms: number, now: number = Date.now()): string {
  const isToday = new Date(ms).toDateString() === new Date(now).toDateString();
  return isToday ? timeOfDay.format(ms) : `${shortDay(ms, now)}, ${timeOfDay.format(ms)}`;
}

/** The time of day with its seconds. */
export function secondTime(ms: number): string {
  return timeWithSeconds.format(ms);
}

/** A day of UTC, such as `2026-11-16`, in few letters. */
export function shortDate(day: string): string {
  return dayOfUtc.format(Date.parse(`${day}T00:00:00Z`));
}

export function shortDay(ms: number, now: number = Date.now()): string {
  const isThisYear = new Date(ms).getFullYear() === new Date(now).getFullYear();
  return (isThisYear ? dayOfYear : fullDay).format(ms);
}

/** How long something took: `80 ms`, `1.4 s`, `3 min 20 s`. A unit stays in the line of its number. */
export function duration(ms: number): string {
  if (ms < 1_000) {
    return `${Math.round(ms)}\u00a0ms`;
  }
  if (ms < MINUTE) {
    return `${(ms / 1_000).toFixed(1)}\u00a0s`;
  }
  const minutes = Math.floor(ms / MINUTE);
  return minutes < 60 ? `${minutes}\u00a0min ${Math.floor((ms % MINUTE) / 1_000)}\u00a0s` : `${Math.floor(minutes / 60)}\u00a0h ${minutes % 60}\u00a0min`;
}

export function count(value: number): string {
  return whole.format(value);
}

/** A number with what is counted, such as `1 message`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** `1.2K`, `3.4M`. */
export function compact(value: number): string {
  return short.format(value);
}

/** Dollars, with as many digits as small amounts need. */
export function money(usd: number): string {
  if (usd === 0) {
    return "$0";
  }
  if (usd < 0.01) {
    return `$${usd.toPrecision(1)}`;
  }
  return `$${usd.toFixed(usd < 100 ? 2 : 0)}`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let rest = value;
  let unit = 0;
  while (rest >= 1_000 && unit < units.length - 1) {
    rest /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? rest : rest.toFixed(1)} ${units[unit]}`;
}

/** What to call a session: its title, its name, how it begins, or its id. */
export function sessionTitle(meta: SessionMeta, details?: SessionDetails): string {
  const found = [meta.title, details?.name, details?.preview].find((text) => text !== undefined && text.trim() !== "");
  return firstLine(found ?? meta.session_id);
}

/** The agent that a session's metadata names. */
export function agentOf(metadata: Record<string, unknown> | undefined): string | undefined {
  for (const key of ["agent", "agent_name", "agent_id"]) {
    const value = metadata?.[key];
    if (typeof value === "string" && value !== "") {
      return value;
    }
  }
  return undefined;
}

export function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}

// The numbers behind a chart: series that are stacked day by day, and an axis that begins at zero.

import type { StatsRow } from "../api/stats";
import type { UsageTotals } from "../api/types";

export type Measure = "tokens" | "cost";
export type Grouping = "model" | "agent" | "project" | "session";

export interface Series {
  name: string;
  /** A value for each day. */
  values: number[];
  total: number;
}

export interface ChartData {
  /** Every day from the first to the last, those without use among them. */
  days: string[];
  /** The largest first. */
  series: Series[];
  /** The largest sum of a day. */
  most: number;
}

/** Series that have a colour of their own; the others are one series. */
export const SERIES_MAX = 6;
const UNNAMED = "not named";
const OTHERS = "all others";
const DAY_MS = 86_400_000;

export function tokensOf(usage: UsageTotals): number {
  return usage.input + usage.output + usage.cache_read + usage.cache_write;
}

/** What the models read, from a cache or not. */
export function readBy(usage: UsageTotals): number {
  return usage.input + usage.cache_read + usage.cache_write;
}

export function valueOf(usage: UsageTotals, measure: Measure): number {
  return measure === "tokens" ? tokensOf(usage) : usage.cost_usd;
}

/** The part of what was read that came from a cache; nothing when nothing was read. */
export function cachePart(usage: UsageTotals): number | undefined {
  const read = readBy(usage);
  return read === 0 ? undefined : usage.cache_read / read;
}

export function nameOf(row: StatsRow, by: Grouping): string {
  return (by === "session" ? row.session_id : row[by]) ?? UNNAMED;
}

/** The days go from the first to the last one that has a row or is in `span`. */
export function chartOf(rows: StatsRow[], by: Grouping, measure: Measure, span: string[] = []): ChartData {
  const days = daysBetween([...span, ...rows.flatMap((row) => row.day ?? [])]);
  const at = new Map(days.map((day, index) => [day, index]));
  const series = new Map<string, Series>();
  for (const row of rows) {
    const name = nameOf(row, by);
    const one = series.get(name) ?? { name, values: days.map(() => 0), total: 0 };
    const index = at.get(row.day ?? "");
    const value = valueOf(row.usage, measure);
    if (index !== undefined) {
      one.values[index] = (one.values[index] ?? 0) + value;
      one.total += value;
    }
    series.set(name, one);
  }
  const sorted = [...series.values()].filter((one) => one.total > 0).sort((a, b) => b.total - a.total);
  const shown = sorted.length > SERIES_MAX ? [...sorted.slice(0, SERIES_MAX - 1), together(sorted.slice(SERIES_MAX - 1))] : sorted;
  const most = Math.max(0, ...days.map((_, index) => shown.reduce((sum, one) => sum + (one.values[index] ?? 0), 0)));
  return { days, series: shown, most };
}

function together(series: Series[]): Series {
  const values = (series[0]?.values ?? []).map((_, index) => series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0));
  return { name: OTHERS, values, total: series.reduce((sum, one) => sum + one.total, 0) };
}

/** All days from the first to the last one; days are those of UTC. */
export function daysBetween(some: string[]): string[] {
  const times = some.map((day) => Date.parse(`${day}T00:00:00Z`)).filter((time) => !Number.isNaN(time));
  const days: string[] = [];
  for (let time = Math.min(...times); time <= Math.max(...times); time += DAY_MS) {
    days.push(new Date(time).toISOString().slice(0, 10));
  }
  return days;
}

/** Round numbers from zero to at least `most`. */
export function scale(most: number, steps = 4): number[] {
  if (most <= 0) {
    return [0, 1];
  }
  const raw = most / steps;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
}

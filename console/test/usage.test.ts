import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatsRow } from "../src/api/stats";
import { cachePart, chartOf, daysBetween, scale } from "../src/usage/chart";

function row(day: string, model: string | undefined, input: number, cost = 0): StatsRow {
  const usage = { input, output: 0, cache_read: 0, cache_write: 0, reasoning: 0, cost_usd: cost, messages: 1 };
  return { day, ...(model === undefined ? {} : { model }), usage, model_time_ms: 0, tool_calls: 0, tool_errors: 0, tool_time_ms: 0 };
}

test("days without use are days too, over the end of a month", () => {
  assert.deepEqual(daysBetween(["2026-11-02", "2026-10-30"]), ["2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02"]);
  assert.deepEqual(daysBetween([]), []);
});

test("series are stacked by day, the largest first", () => {
  const chart = chartOf([row("2026-11-01", "a", 5), row("2026-11-01", "b", 7), row("2026-11-03", "b", 9), row("2026-11-03", undefined, 1)], "model", "tokens");
  assert.deepEqual(chart.series.map(({ name, values }) => [name, values]), [["b", [7, 0, 9]], ["a", [5, 0, 0]], ["not named", [0, 0, 1]]]);
  assert.equal(chart.most, 12);
});

test("the axis has every day that was asked for", () => {
  const chart = chartOf([row("2026-11-02", "a", 5)], "model", "tokens", ["2026-10-31", "2026-11-03"]);
  assert.deepEqual(chart.days, ["2026-10-31", "2026-11-01", "2026-11-02", "2026-11-03"]);
  assert.deepEqual(chart.series.map(({ values }) => values), [[0, 0, 5, 0]]);
});

test("many series lose nothing: the small ones are summed up", () => {
  const rows = Array.from({ length: 20 }, (_, at) => row("2026-11-01", `m${at}`, at, at / 10));
  for (const [measure, sum] of [["tokens", 190], ["cost", 19]] as const) {
    const chart = chartOf(rows, "model", measure);
    assert.equal(chart.series.length, 6);
    assert.ok(Math.abs(chart.series.reduce((total, one) => total + one.total, 0) - sum) < 1e-9);
    assert.ok(Math.abs(chart.most - sum) < 1e-9);
  }
});

test("a scale begins at zero, reaches the largest value, and has few round steps", () => {
  for (const most of [0.003, 1, 7, 12, 99, 100, 101, 123_456, 9e9]) {
    const ticks = scale(most);
    assert.equal(ticks[0], 0);
    const last = ticks.at(-1) ?? 0;
    assert.ok(last >= most * (1 - 1e-9) && last <= most * 1.7, `${most}: ${ticks.join(" ")}`);
    assert.ok(ticks.length >= 3 && ticks.length <= 6, `${most}: ${ticks.join(" ")}`);
  }
  assert.deepEqual(scale(12), [0, 5, 10, 15]);
  assert.deepEqual(scale(0), [0, 1]);
});

test("cache hits are a part of what was read", () => {
  const usage = { input: 10, output: 500, cache_read: 80, cache_write: 10, reasoning: 0, cost_usd: 0, messages: 1 };
  assert.equal(cachePart(usage), 0.8);
  assert.equal(cachePart({ ...usage, input: 0, cache_read: 0, cache_write: 0 }), undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoopEntry, LoopSummary } from "../src/api/loops";
import type { ContentBlock } from "../src/api/types";
import { Axis } from "../src/loops/axis";
import { RecordedEntries } from "../src/loops/entries";
import { LoopPages } from "../src/loops/pages";
import { grouped, rowsOf } from "../src/loops/timeline";
import { scaled, Sight } from "../src/loops/zoom";

const USAGE = { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 0 };

function loop(id: string, start: number, end: number | undefined, fields: Partial<LoopSummary> = {}): LoopSummary {
  const turns = [{ turn_index: 0, started_at: start, ended_at: start + 50, tool_results: 0, usage: USAGE }];
  const ended = end === undefined ? {} : { ended_at: end };
  return { loop_id: id, agent_id: "a", continuation: "default", status: "completed", started_at: start, ...ended, messages: 0, turns, usage: USAGE, children_loop_ids: [], spawned: [], ...fields };
}

function asks(loopId: string, at: number, ...calls: string[]): LoopEntry {
  const content: ContentBlock[] = calls.map((id) => ({ type: "function_call", id, function_id: `tool ${id}`, arguments: {} }));
  return { entry_id: `e${at}`, timestamp: at, origin: { loop_id: loopId }, message: { role: "assistant", content } };
}

function answers(loopId: string, at: number, call: string): LoopEntry {
  return { entry_id: `e${at}`, timestamp: at, origin: { loop_id: loopId }, message: { role: "function_result", content: [], function_call_id: call } };
}

test("time and place are each other's inverse, whether pauses are cut or not", () => {
  const spans = [{ start: 0, end: 100 }, { start: 50, end: 200 }, { start: 10_000, end: 10_200 }];
  for (const cuts of [true, false]) {
    const axis = new Axis(spans, cuts);
    assert.equal(axis.cuts.length, cuts ? 1 : 0);
    for (const time of [0, 50, 150, 10_000, 10_111, 10_200]) {
      assert.ok(Math.abs(axis.time(axis.place(time)) - time) < 1e-6, `${time}`);
    }
    assert.equal(axis.place(10_200), 1);
  }
});

test("a pause that is cut takes little room and says how long it was", () => {
  const axis = new Axis([{ start: 0, end: 100 }, { start: 10_000, end: 10_100 }], true);
  assert.deepEqual(axis.cuts.map((cut) => cut.ms), [9_900]);
  assert.ok(axis.place(10_000) - axis.place(100) < 0.05);
  assert.equal(axis.place(5_000), axis.place(100));
});

test("the axis names round times, and says where it goes on after a pause", () => {
  const axis = new Axis([{ start: 1_003_000, end: 1_093_000 }, { start: 9_001_000, end: 9_007_000 }], true);
  assert.deepEqual(axis.ticks(6).map((tick) => tick.time), [1_020_000, 1_050_000, 1_080_000]);
  const late = new Axis([{ start: 1_003_000, end: 1_053_000 }, { start: 9_001_000, end: 9_051_000 }, { start: 20_001_000, end: 20_009_000 }], true);
  assert.deepEqual(late.ticks(4).map((tick) => tick.time), [1_020_000, 1_050_000, 9_030_000]);
  assert.deepEqual(new Axis([{ start: 0, end: 90_000 }, { start: 901_000, end: 919_000 }], true).ticks(4).map((tick) => tick.time), [0, 30_000, 60_000]);
});

test("a recording that took no time has an axis", () => {
  const axis = new Axis([{ start: 7, end: 7 }], true);
  assert.equal(axis.place(7), 0);
  assert.equal(axis.ticks(6).length, 1);
});

test("calls are answered within their loop, side by side on different lanes", () => {
  const entries = [asks("a", 10, "x", "y"), asks("b", 20, "x"), answers("a", 30, "x"), answers("b", 90, "x"), answers("a", 60, "y")];
  const [first, second] = rowsOf([loop("a", 0, 100), loop("b", 0, 100)], entries, 1_000);
  assert.deepEqual(first?.calls.map((call) => [call.start, call.end, call.lane]), [[10, 30, 0], [10, 60, 1]]);
  assert.deepEqual(second?.calls.map((call) => [call.start, call.end, call.lane]), [[20, 90, 0]]);
});

test("a loop that runs goes on until now, and one that was broken off ends with its last words", () => {
  const loops = [loop("a", 0, undefined, { status: "running" }), loop("b", 0, undefined, { status: "aborted" })];
  const [running, aborted] = rowsOf(loops, [asks("b", 40, "x")], 1_000);
  assert.equal(running?.end, 1_000);
  assert.equal(aborted?.end, 40);
  assert.equal(aborted?.calls[0]?.isOpen, true);
});

test("parallel loops stand together, even if others began between them", () => {
  const group = { loop_ids: ["b", "d"], winner: "d", evaluation_usage: USAGE };
  const rows = rowsOf([loop("a", 0, 1), loop("b", 1, 2, { group }), loop("c", 1, 2), loop("d", 1, 2, { group })], [], 9);
  assert.deepEqual(grouped(rows).map(({ rows }) => rows.map((row) => row.number)), [[1], [2, 4], [3]]);
});

test("time and place agree where only a part of the axis is seen", () => {
  const axis = new Axis([{ start: 0, end: 3_600_000 }], true);
  const sight = new Sight(axis, scaled({ from: 0, to: 1 }, 60, 0.5, 0));
  assert.deepEqual([sight.time(0), sight.time(1)], [1_770_000, 1_830_000]);
  assert.deepEqual(sight.ticks(6).map(({ at, time }) => [Number(at.toFixed(3)), time]), [1_770_000, 1_780_000, 1_790_000, 1_800_000, 1_810_000, 1_820_000].map((time, at) => [Number((at / 6).toFixed(3)), time]));
  assert.equal(sight.stretch({ start: 0, end: 1_000 }), undefined);
  const inside = sight.stretch({ start: 1_800_000, end: 1_815_000 });
  assert.deepEqual([inside?.from.toFixed(6), inside?.width.toFixed(6)], ["0.500000", "0.250000"]);
  const across = sight.stretch({ start: 0, end: 3_600_000 });
  assert.ok(across !== undefined && across.from < 0 && across.from + across.width > 1, "no edge is drawn where there is none");
});

test("what is seen stays within the axis, and keeps the time at the place that it grows around", () => {
  const part = scaled({ from: 0, to: 1 }, 4, 0.2, 0.01);
  assert.ok(Math.abs(part.from + 0.2 * (part.to - part.from) - 0.2) < 1e-9);
  assert.deepEqual(scaled(part, 100, 1, 0.05).to, part.to);
  assert.ok(Math.abs(scaled(part, 100, 0, 0.05).to - part.from - 0.05) < 1e-9, "no larger than seconds can be told apart");
  assert.deepEqual(scaled(part, 0.01, 0, 0), { from: 0, to: 1 });
});

test("very many pauses leave most of the axis for what was done", () => {
  const spans = Array.from({ length: 9 }, (_, at) => ({ start: at * 1_000_000, end: at * 1_000_000 + 1_000 }));
  const many = new Axis([...spans, ...spans.map(({ start, end }) => ({ start: start + 20_000_000, end: end + 20_000_000 }))], true);
  assert.equal(many.cuts.length, 17);
  assert.ok(many.cuts.reduce((sum, cut) => sum + cut.width, 0) < 0.25);
});

test("entries are read from the end that is nearer, until a stretch of time is known", async () => {
  const all = Array.from({ length: 100 }, (_, at): LoopEntry => ({ entry_id: `e${at}`, timestamp: at }));
  const asked: string[] = [];
  const entries = new RecordedEntries(({ order, cursor = "0" }) => {
    const from = Number(cursor);
    asked.push(order);
    const found = (order === "oldest" ? all : all.toReversed()).slice(from, from + 10);
    return Promise.resolve({ entries: found, ...(from + 10 < all.length ? { next_cursor: String(from + 10) } : {}) });
  });
  const want = async (start: number, end: number) => {
    asked.length = 0;
    while (!entries.has({ start, end })) {
      await entries.readTowards({ start, end });
    }
    return asked.join(" ");
  };
  assert.equal(await want(0, 5), "oldest newest oldest");
  assert.equal(await want(85, Infinity), "newest newest");
  assert.equal(await want(40, 42), "oldest oldest oldest oldest");
  assert.equal(entries.known().length, 90);
  all.push({ entry_id: "e100", timestamp: 100 });
  await entries.readNews();
  assert.equal(entries.known().at(-1)?.entry_id, "e100");
  await want(0, Infinity);
  assert.deepEqual(entries.known().map((entry) => entry.timestamp), all.map((entry) => entry.timestamp));
});

test("only the pages of loops that changed are read again", async () => {
  const all = Array.from({ length: 25 }, (_, at) => loop(`l${at}`, at, at + 1, at === 0 ? {} : { parent_loop_id: `l${at - 1}` }));
  const asked: (string | undefined)[] = [];
  const pages = new LoopPages((cursor) => {
    asked.push(cursor);
    const from = Number(cursor ?? 0);
    return Promise.resolve({ loops: all.slice(from, from + 10), ...(from + 10 < all.length ? { next_cursor: String(from + 10) } : {}) });
  });
  await pages.readNews(new Set(), () => undefined);
  assert.deepEqual(asked, [undefined, "10", "20"]);
  asked.length = 0;
  all.push(loop("new", 30, undefined, { parent_loop_id: "l3" }));
  await pages.readNews(new Set(["new"]), () => undefined);
  assert.deepEqual(asked, ["20", undefined], "the last page, and the one with the parent");
  assert.equal(pages.known().length, 26);
});

test("what is forgotten while loops are read is read again, and none is lost", async () => {
  const all = Array.from({ length: 25 }, (_, at) => loop(`l${at}`, at, at + 1));
  const asked: (string | undefined)[] = [];
  const pages = new LoopPages((cursor) => {
    asked.push(cursor);
    if (asked.length === 2) {
      pages.forget();
    }
    const from = Number(cursor ?? 0);
    return Promise.resolve({ loops: all.slice(from, from + 10), ...(from + 10 < all.length ? { next_cursor: String(from + 10) } : {}) });
  });
  await pages.readNews(new Set(), () => undefined);
  assert.equal(pages.known().length, 25);
  await pages.readNews(new Set(), () => undefined);
  assert.deepEqual(asked, [undefined, "10", "20", undefined, "10", "20"]);
  assert.deepEqual(pages.known(), all);
});

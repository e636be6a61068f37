import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoopEntry, LoopSummary } from "../src/api/loops";
import type { ContentBlock } from "../src/api/types";
import { Axis } from "../src/loops/axis";
import { grouped, rowsOf } from "../src/loops/timeline";

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

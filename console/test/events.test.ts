import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/api/events";

test("events are the same however the stream is cut", () => {
  const text = 'retry: 1000\n: ok\n\nid: 1\nevent: a\ndata: {"x":1}\n\nid: 2\nevent: b\r\ndata: one\r\ndata: two\r\n\r\n: alive\n\n';
  const whole = new EventParser().push(text);
  assert.deepEqual(whole, [
    { id: "1", name: "a", data: '{"x":1}' },
    { id: "2", name: "b", data: "one\ntwo" },
  ]);
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new EventParser();
    assert.deepEqual([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))], whole, `cut at ${cut}`);
  }
});

test("an event without data is none", () => {
  assert.deepEqual(new EventParser().push("id: 7\n\n: ok\n\n"), []);
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { type ServerSentEvent, SseDecoder } from "../src/sse.js";

const STREAM = ": hello\r\nretry: 1000\n\nid: 1\nevent: a\ndata: één\ndata: two\n\n: alive\n\nid: 2\r\ndata: {\"x\":1}\r\n\r\n";

test("events are the same wherever the stream is cut", () => {
  const bytes = new TextEncoder().encode(STREAM);
  const expected: ServerSentEvent[] = [
    { id: "1", name: "a", data: "één\ntwo" },
    { id: "2", name: "message", data: '{"x":1}' },
  ];
  for (let size = 1; size <= bytes.length; size += 1) {
    const decoder = new SseDecoder();
    const events: ServerSentEvent[] = [];
    for (let at = 0; at < bytes.length; at += size) events.push(...decoder.feed(bytes.slice(at, at + size)));
    assert.deepEqual(events, expected, `in pieces of ${size}`);
  }
});

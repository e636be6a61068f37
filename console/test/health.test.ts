import assert from "node:assert/strict";
import { test } from "node:test";
import { limitsInWords, storeInWords, storeLimitsInWords } from "../src/health/words";
import { verdictOf } from "../src/health/verification";

test("limits have words and units; unknown ones keep their own names", () => {
  const limits = { heartbeat: "15s", body_bytes: 67_108_864, stream_bytes_per_token: 2_000, streams: 2048, request_timeout: "1m", new_one: 7, absent: null };
  assert.deepEqual(limitsInWords(limits), [
    ["Largest request", "67.1 MB"],
    ["Live streams", "2,048"],
    ["Held for slow readers of a token", "2.0 kB"],
    ["Time for a request", "1 min"],
    ["Sign of life on a quiet stream", "15 s"],
    ["New one", "7"],
  ]);
  assert.deepEqual(storeLimitsInWords({ streams_per_session: 64, entry_id_bytes: 256 }), [
    ["Longest entry id", "256 B"],
    ["Streams of a session", "64"],
  ]);
});

test("checkpoints are shown where they were counted, and trouble where there is some", () => {
  const store = { kind: "native", is_reachable: false, sessions: 3, reopened_sessions: 0, trouble: "the disk is full", limits: {} };
  const names = (facts: [string, string][]) => facts.map(([name]) => name).join(", ");
  assert.equal(names(storeInWords(store)), "Kind, Reachable, Sessions, Reopened after a failed write, Trouble");
  const counted = storeInWords({ ...store, trouble: null, checkpoints: { measured_at: 0, checkpointed: 2, dirty: 1, unreadable: 0 } });
  assert.equal(names(counted), "Kind, Reachable, Sessions, Checkpointed, Changed since their checkpoint, Counted at, Reopened after a failed write");
});

test("damage is never told as well", () => {
  const last = { started_at: 0, finished_at: Date.now(), sessions: 2, bytes: 10, damaged: 1 };
  assert.deepEqual(verdictOf({ status: "damaged", last }), { value: "damaged", about: "some sessions are not what was written; checked just now" });
  assert.equal(verdictOf({ status: "never" }).value, "never");
  assert.equal(verdictOf(null).value, "–");
});

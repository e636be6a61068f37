import assert from "node:assert/strict";
import { test } from "node:test";
import { compareHref, NO_FILTERS, parseRoute, sessionHref, sessionsHref, treeHref } from "../src/router";

test("an address leads back to the filters that it was made from", () => {
  const filters = { ...NO_FILTERS, text: 'say "a & b" #1', status: "error", since: "7d", archived: true };
  assert.deepEqual(parseRoute(sessionsHref(filters)), { view: "sessions", filters });
  assert.deepEqual(parseRoute(""), { view: "sessions", filters: NO_FILTERS });
});

test("any id can be in an address", () => {
  for (const session of ["s_1", "a/b?c#d", "ü 100%", ".."]) {
    assert.deepEqual(parseRoute(sessionHref(session, "e/1")), { view: "session", session, entry: "e/1" });
    assert.deepEqual(parseRoute(sessionHref(session)), { view: "session", session, entry: undefined });
    assert.deepEqual(parseRoute(treeHref(session)), { view: "tree", session });
    assert.deepEqual(parseRoute(compareHref(session, "e/1", "e&2")), { view: "compare", session, left: "e/1", right: "e&2" });
  }
});

test("an address that is cut or unknown is no view", () => {
  assert.equal(parseRoute("#/nothing").view, "unknown");
  assert.deepEqual(parseRoute("#/sessions/%E0%A4%A"), { view: "session", session: "%E0%A4%A", entry: undefined });
});

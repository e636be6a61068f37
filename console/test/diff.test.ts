import assert from "node:assert/strict";
import { test } from "node:test";
import { editsOf, lineDiff, parseDiff } from "../src/transcript/diff";

const marked = (lines: { kind: string; text: string }[]) => lines.map((line) => `${line.kind}:${line.text}`);

test("a line in the middle is added between equal ones", () => {
  assert.deepEqual(marked(lineDiff("a\nb\nc", "a\nx\nb\nc")), ["same:a", "added:x", "same:b", "same:c"]);
});

test("the longest common lines stay", () => {
  assert.deepEqual(marked(lineDiff("a\nb\nc\nd", "b\nc\ne")), ["removed:a", "same:b", "same:c", "removed:d", "added:e"]);
});

test("equal lines far from a change are left out", () => {
  const many = Array.from({ length: 20 }, (_, at) => `line ${at}`);
  const lines = lineDiff(many.join("\n"), [...many, "end"].join("\n"));
  assert.deepEqual(marked(lines), ["skipped:…", "same:line 17", "same:line 18", "same:line 19", "added:end"]);
});

test("an added line in an empty text is no removed one", () => {
  assert.deepEqual(marked(lineDiff("", "a")), ["added:a"]);
});

test("the edits of known tools are found", () => {
  assert.deepEqual(marked(editsOf({ old_string: "a", new_string: "b" }) ?? []), ["removed:a", "added:b"]);
  assert.deepEqual(marked(editsOf({ edits: [{ oldText: "a", newText: "b" }, { oldText: "c", newText: "" }] }) ?? []), ["removed:a", "added:b", "removed:c"]);
  assert.deepEqual(marked(editsOf({ patch: "@@ -1 +1 @@\n-a\n+b\n c" }) ?? []), ["skipped:@@ -1 +1 @@", "removed:a", "added:b", "same:c"]);
  assert.equal(editsOf({ command: "ls" }), undefined);
  assert.equal(editsOf("text"), undefined);
  assert.equal(editsOf(null), undefined);
});

test("the heads of a diff are no changes", () => {
  assert.deepEqual(marked(parseDiff("--- a\n+++ b")), ["skipped:--- a", "skipped:+++ b"]);
});

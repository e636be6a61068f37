import assert from "node:assert/strict";
import { test } from "node:test";
import { editsOf, isUnifiedDiff, lineDiff, parseDiff } from "../src/transcript/diff";

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
  const patch = "*** Begin Patch\n*** Update File: a.sql\n@@\n--- old\n+new\n same\n*** End Patch";
  const lines = ["skipped:*** Begin Patch", "skipped:*** Update File: a.sql", "skipped:@@", "removed:-- old", "added:new", "same:same", "skipped:*** End Patch"];
  for (const args of [patch, { input: patch }, { command: `apply_patch <<'EOF'\n${patch}\nEOF` }]) {
    assert.deepEqual(marked(editsOf(args) ?? []), lines);
  }
  assert.equal(editsOf({ command: "ls" }), undefined);
  assert.equal(editsOf("text"), undefined);
  assert.equal(editsOf(null), undefined);
});

test("the heads of a diff are no changes", () => {
  assert.deepEqual(marked(parseDiff("--- a\n+++ b")), ["skipped:--- a", "skipped:+++ b"]);
  const diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a comment\n+++ another\n same\n--- a/y";
  assert.ok(isUnifiedDiff(diff));
  assert.ok(!isUnifiedDiff("--- a line\n+++ another line"));
  assert.deepEqual(marked(parseDiff(diff)).slice(3), ["skipped:@@ -1,2 +1,2 @@", "removed:-- a comment", "added:++ another", "same:same", "skipped:--- a/y"]);
});

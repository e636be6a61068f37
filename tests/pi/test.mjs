// pi's own session manager reads what we write, and we read what it writes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { SessionManager } from "./node_modules/@mariozechner/pi-coding-agent/dist/core/session-manager.js";

const root = mkdtempSync(join(tmpdir(), "bough-pi-"));
after(() => rmSync(root, { recursive: true }));
let folders = 0;
const folder = () => mkdtempSync(join(root, `${++folders}-`));
const peer = (...words) => JSON.parse(execFileSync(process.env.PI_PEER, words, { encoding: "utf8" }));
const lines = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

const user = (text) => ({ role: "user", content: text, timestamp: Date.now() });
const usage = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const assistant = (text) => ({
  role: "assistant",
  content: [{ type: "thinking", thinking: "hm" }, { type: "text", text }, { type: "toolCall", id: "c1", name: "bash", arguments: { command: "ls" } }],
  api: "anthropic-messages", provider: "anthropic", model: "m", usage, stopReason: "toolUse", timestamp: Date.now(),
});

// A session with every kind of entry and three branches, as pi writes it.
function written() {
  const dir = folder();
  const pi = SessionManager.create("/some/project", dir);
  const first = pi.appendMessage(user("Hello \u{1f600}"));
  const second = pi.appendMessage(assistant("Hi"));
  pi.appendMessage({ role: "toolResult", toolCallId: "c1", toolName: "bash", content: [{ type: "text", text: "out" }], details: {}, isError: false, timestamp: Date.now() });
  pi.appendModelChange("openai", "gpt-4o");
  pi.appendThinkingLevelChange("high");
  pi.appendMessage({ role: "bashExecution", command: "ls", output: "x", exitCode: 0, cancelled: false, truncated: false, timestamp: Date.now() });
  pi.appendCustomEntry("ext", { count: 42 });
  pi.appendCustomMessageEntry("ext", "Injected", true, {});
  pi.appendCompaction("what was", second, 50_000, { readFiles: [] }, false);
  pi.appendLabelChange(first, "start");
  pi.branch(second);
  pi.appendMessage(user("Another way"));
  pi.branchWithSummary(first, "left that", {}, false);
  pi.appendMessage(assistant("Third"));
  pi.appendSessionInfo("Named by pi");
  return pi;
}

const seen = (pi) => pi.getEntries().map((entry) => [entry.id, entry.parentId]);

test("we read what pi wrote", () => {
  const pi = written();
  const ours = peer("read", pi.getSessionFile());
  assert.deepEqual(ours.entries.map((entry) => [entry.id, entry.parentId]), seen(pi));
  assert.equal(ours.session, pi.getSessionId());
  assert.equal(ours.leaf, pi.getLeafId());
  assert.equal(ours.name, "Named by pi");
  assert.equal(ours.labels[0][1], "start");
  assert.equal(ours.entries[0].text, "Hello \u{1f600}");
  assert.ok(ours.well);
});

test("a migrated file exported again is deep-equal, and pi opens it as the same session", () => {
  const pi = written();
  const file = pi.getSessionFile();
  const before = readFileSync(file);
  const data = folder();
  const { session } = peer("migrate", data, file);
  const out = join(folder(), "out.jsonl");
  peer("export", data, session, out);
  assert.deepEqual(lines(out), lines(file));
  assert.deepEqual(readFileSync(file), before, "the source is untouched");
  const again = SessionManager.open(out);
  assert.deepEqual(again.getTree(), SessionManager.open(file).getTree());
  assert.deepEqual(again.buildSessionContext(), pi.buildSessionContext());
});

test("one branch is a session of its own to pi", () => {
  const pi = written();
  const data = folder();
  const { session } = peer("migrate", data, pi.getSessionFile());
  const out = join(folder(), "branch.jsonl");
  const leaf = pi.getEntries().find((entry) => entry.message?.content === "Another way").id;
  peer("export", data, session, out, leaf);
  const branch = SessionManager.open(out);
  const ids = branch.getBranch().map((entry) => entry.id);
  assert.deepEqual(ids.slice(0, 3), pi.getBranch(leaf).map((entry) => entry.id));
  assert.equal(branch.getLabel(ids[0]), "start");
});

test("what was written since a migration is in the file after a rollback, and pi goes on from there", () => {
  const pi = written();
  const file = pi.getSessionFile();
  const data = folder();
  const { session } = peer("migrate", data, file);
  const said = peer("say", data, session, "native words");
  assert.equal(peer("rollback", data, session).exported, 1);
  const opened = SessionManager.open(file);
  assert.equal(opened.getLeafId(), said.id);
  assert.equal(opened.getEntry(said.id).message.content[0].text, "native words");
  const next = opened.appendMessage(assistant("pi again"));
  const ours = peer("read", file);
  assert.equal(ours.leaf, next);
  assert.ok(ours.well);
});

test("pi understands a session that never was its own", () => {
  const entries = [
    { kind: "message", id: "u", parent_id: null, timestamp: 1, message: { role: "user", content: [{ type: "text", text: "look" }], timestamp: 1 } },
    { kind: "message", id: "v", parent_id: "u", timestamp: 2, message: { role: "assistant", content: [{ type: "text", text: "ok" }, { type: "function_call", id: "c", function_id: "bash", arguments: {} }], stop_reason: "function_call", model: "m", provider: "p", timestamp: 2 } },
    { kind: "message", id: "w", parent_id: "v", timestamp: 3, message: { role: "function_result", function_call_id: "c", function_id: "bash", content: [{ type: "text", text: "done" }], details: null, is_error: false, timestamp: 3 } },
    { kind: "custom", id: "x", parent_id: "w", timestamp: 4, custom_type: "bough.model_change", data: { provider: "q", model_id: "n" } },
    { kind: "custom", id: "y", parent_id: "x", timestamp: 5, custom_type: "bough.compaction", data: { summary: "sum", first_kept_entry_id: "w", tokens_before: 9 } },
  ];
  const data = folder();
  peer("make", data, "s_made", JSON.stringify(entries));
  const out = join(folder(), "made.jsonl");
  peer("export", data, "s_made", out);
  const pi = SessionManager.open(out);
  const context = pi.buildSessionContext();
  assert.deepEqual(context.messages.map((message) => message.role), ["compactionSummary", "toolResult"]);
  assert.deepEqual(context.model, { provider: "q", modelId: "n" });
  assert.equal(pi.getSessionName(), "Made here");
  pi.appendMessage(user("and on"));
  assert.equal(lines(out).at(-1).message.content, "and on");
});

test("a genuine file of the first version survives us and is upgraded by pi", () => {
  const sample = fileURLToPath(new URL("../../crates/migrate/tests/fixtures/pi-large-session.jsonl", import.meta.url));
  const file = join(folder(), "large.jsonl");
  copyFileSync(sample, file);
  const data = folder();
  const { session, entries } = peer("migrate", data, file);
  const out = join(folder(), "out.jsonl");
  peer("export", data, session, out);
  assert.deepEqual(lines(out), lines(sample));
  const pi = SessionManager.open(out);
  assert.equal(pi.getEntries().length, entries);
  assert.equal(lines(out)[0].version, 3, "pi rewrites it as version 3");
  assert.ok(peer("read", out).well);
});

test("damaged files do not stop either of us", () => {
  const pi = written();
  const file = pi.getSessionFile();
  const broken = readFileSync(file, "utf8").replace("\n", "\nnot json\n\n") + '{"type":"mess';
  writeFileSync(file, broken);
  const ours = peer("read", file);
  assert.deepEqual(ours.entries.map((entry) => entry.id), seen(SessionManager.open(file)).map(([id]) => id));
});

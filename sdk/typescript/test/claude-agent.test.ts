/** The fourteen contracts that the Claude Agent SDK for Python has for session stores, and what ours promises beside them. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { foldSessionSummary, type SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";

import { BoughSessionStore } from "../src/claude-agent.js";
import { Bough } from "../src/index.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;
let stores = 0;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url });
});
after(() => server.remove());

/** A store that nothing was written to. */
function newStore(): BoughSessionStore {
  stores += 1;
  return new BoughSessionStore(bough, { prefix: `claude-${stores}` });
}

const KEY = { projectKey: "proj", sessionId: "sess" };
const SUB1 = { ...KEY, subpath: "subagents/agent-1" };
const SUB2 = { ...KEY, subpath: "subagents/agent-2" };
const line = (members: { [name: string]: unknown }): SessionStoreEntry => ({ type: "x", ...members });
const ONE = [line({ n: 1 })];

test("1. what is appended is loaded in the same order", async () => {
  const store = newStore();
  const lines = [line({ uuid: "b", n: 1 }), line({ uuid: "a", n: 2 })];
  await store.append(KEY, lines);
  assert.deepEqual(await store.load(KEY), lines);
});

test("2. an unknown key loads null", async () => {
  const store = newStore();
  assert.equal(await store.load({ projectKey: "proj", sessionId: "nope" }), null);
  await store.append(KEY, [line({ uuid: "x", n: 1 })]);
  assert.equal(await store.load({ ...KEY, subpath: "nope" }), null);
});

test("3. several appends keep the order of the calls", async () => {
  const store = newStore();
  const lines = ["z", "a", "m", "b"].map((uuid, n) => line({ uuid, n }));
  await store.append(KEY, lines.slice(0, 1));
  await store.append(KEY, lines.slice(1, 3));
  await store.append(KEY, lines.slice(3));
  assert.deepEqual(await store.load(KEY), lines);
});

test("4. appending nothing does nothing", async () => {
  const store = newStore();
  await store.append(KEY, ONE);
  await store.append(KEY, []);
  assert.deepEqual(await store.load(KEY), ONE);
});

test("5. subpaths are kept apart from the main transcript", async () => {
  const store = newStore();
  await store.append(KEY, [line({ uuid: "m" })]);
  await store.append(SUB1, [line({ uuid: "s" })]);
  assert.deepEqual(await store.load(KEY), [line({ uuid: "m" })]);
  assert.deepEqual(await store.load(SUB1), [line({ uuid: "s" })]);
});

test("6. projects are kept apart", async () => {
  const store = newStore();
  for (const projectKey of ["A", "B"]) await store.append({ projectKey, sessionId: "s1" }, [line({ from: projectKey })]);
  for (const projectKey of ["A", "B"]) {
    assert.deepEqual(await store.load({ projectKey, sessionId: "s1" }), [line({ from: projectKey })]);
    assert.equal((await store.listSessions(projectKey)).length, 1);
  }
});

test("7. the sessions of a project are listed", async () => {
  const store = newStore();
  for (const sessionId of ["a", "b"]) await store.append({ projectKey: "proj", sessionId }, ONE);
  await store.append({ projectKey: "other", sessionId: "c" }, ONE);
  const listed = await store.listSessions("proj");
  assert.deepEqual(listed.map((session) => session.sessionId).sort(), ["a", "b"]);
  assert.ok(listed.every((session) => Number.isInteger(session.mtime) && session.mtime > 1e12));
  assert.deepEqual(await store.listSessions("never-appended-project"), []);
});

test("8. subagents are not listed as sessions", async () => {
  const store = newStore();
  await store.append(KEY, ONE);
  await store.append(SUB1, ONE);
  assert.deepEqual((await store.listSessions("proj")).map((session) => session.sessionId), ["sess"]);
});

test("9. a deleted transcript loads null", async () => {
  const store = newStore();
  await store.delete({ projectKey: "proj", sessionId: "never-written" });
  await store.append(KEY, ONE);
  await store.delete(KEY);
  assert.equal(await store.load(KEY), null);
});

test("10. deleting a transcript deletes its subagents, and nothing else", async () => {
  const store = newStore();
  const others = [{ ...KEY, sessionId: "sess2" }, { ...KEY, projectKey: "other-proj" }];
  for (const key of [KEY, SUB1, SUB2, ...others]) await store.append(key, ONE);
  await store.delete(KEY);
  for (const key of [KEY, SUB1, SUB2]) assert.equal(await store.load(key), null);
  for (const key of others) assert.deepEqual(await store.load(key), ONE);
  assert.deepEqual(await store.listSubkeys(KEY), []);
  assert.deepEqual((await store.listSessions("proj")).map((session) => session.sessionId), ["sess2"]);
});

test("11. deleting a subpath deletes nothing else", async () => {
  const store = newStore();
  for (const key of [KEY, SUB1, SUB2]) await store.append(key, ONE);
  await store.delete(SUB1);
  assert.equal(await store.load(SUB1), null);
  for (const key of [KEY, SUB2]) assert.deepEqual(await store.load(key), ONE);
  assert.deepEqual(await store.listSubkeys(KEY), [SUB2.subpath]);
});

test("12. the subpaths of a transcript are listed", async () => {
  const store = newStore();
  for (const key of [KEY, SUB1, SUB2, { ...SUB1, sessionId: "other-sess", subpath: "subagents/agent-x" }]) await store.append(key, ONE);
  assert.deepEqual((await store.listSubkeys(KEY)).sort(), [SUB1.subpath, SUB2.subpath]);
});

test("13. the main transcript is no subpath", async () => {
  const store = newStore();
  await store.append(KEY, ONE);
  assert.deepEqual(await store.listSubkeys(KEY), []);
  assert.deepEqual(await store.listSubkeys({ projectKey: "proj", sessionId: "never-appended" }), []);
});

test("14. summaries are kept as the SDK folds them", async () => {
  const store = newStore();
  const at = (seconds: number, members = {}): SessionStoreEntry => line({ timestamp: `2024-01-01T00:00:0${seconds}.000Z`, ...members });
  await store.append(KEY, [at(0, { customTitle: "first" }), at(1)]);
  await store.append(KEY, [at(2, { customTitle: "second" })]);
  await store.append({ projectKey: "other", sessionId: "elsewhere" }, [at(0)]);
  const [summary, ...more] = await store.listSessionSummaries("proj");
  assert.ok(summary !== undefined && more.length === 0);
  assert.equal(summary.sessionId, "sess");
  const [listed] = await store.listSessions("proj");
  assert.ok(summary.mtime > 1e12 && listed !== undefined && summary.mtime >= listed.mtime);
  const refolded = foldSessionSummary(summary, KEY, [at(3)]);
  assert.equal(refolded.sessionId, "sess");
  assert.equal(refolded.mtime, summary.mtime);
  await store.append(SUB1, [at(9, { customTitle: "subagent" })]);
  assert.deepEqual((await store.listSessionSummaries("proj"))[0]?.data, summary.data);
  assert.deepEqual(await store.listSessionSummaries("never-appended-project"), []);
  await store.delete(KEY);
  assert.deepEqual(await store.listSessionSummaries("proj"), []);
});

const LINES: SessionStoreEntry[] = [
  { type: "user", uuid: "u1", timestamp: "2026-01-01T00:00:00Z", message: { role: "user", content: "hi" } },
  { type: "system", subtype: "hook", n: 1 },
  {
    type: "assistant",
    uuid: "u2",
    parentUuid: "u1",
    message: {
      id: "msg_1",
      role: "assistant",
      model: "claude-x",
      content: [{ type: "text", text: "hello" }],
      usage: { input_tokens: 3, output_tokens: 1 },
      stop_reason: "end_turn",
    },
  },
  { type: "user", uuid: "u3", message: { role: "user", content: "and\u2028more" }, isMeta: true },
];

test("a transcript comes back as it was, and is a conversation that anybody can read", async () => {
  const store = newStore();
  await store.append(KEY, LINES);
  assert.deepEqual(await store.load(KEY), LINES);
  const [meta] = await all(bough.list({ metadata: { claude_agent_store: `claude-${stores}` } }));
  assert.ok(meta !== undefined);
  const session = bough.session(meta.session_id);
  const messages = (await all(session.messages())).map((entry) => entry.message);
  assert.deepEqual(messages.map((message) => message?.["role"]), ["user", "assistant", "user"]);
  assert.equal(textOf(messages[1]), "hello");
  assert.equal((await session.usage()).session.total.output, 1);
});

test("a line that is there is not appended again", async () => {
  const store = newStore();
  await store.append(KEY, LINES.slice(0, 1));
  await store.append(KEY, LINES.slice(0, 3));
  await store.append(KEY, LINES.slice(0, 1));
  assert.deepEqual(await store.load(KEY), LINES.slice(0, 3));
});

test("a line that no message can be made of is kept", async () => {
  const store = newStore();
  const odd = [line({ message: { role: "user", content: { not: "content" } } }), ...LINES];
  await store.append(KEY, odd);
  assert.deepEqual(await store.load(KEY), odd);
});

test("appends at the same time are all kept", async () => {
  const store = newStore();
  const writers = [0, 1, 2, 3];
  const append = async (writer: number): Promise<void> => {
    for (const number of [0, 1, 2, 3, 4]) await store.append(KEY, [line({ uuid: `${writer}-${number}` })]);
  };
  await Promise.all(writers.map(append));
  const uuids = (await store.load(KEY))?.map((entry) => entry.uuid).sort();
  assert.deepEqual(uuids, writers.flatMap((writer) => [0, 1, 2, 3, 4].map((number) => `${writer}-${number}`)));
});

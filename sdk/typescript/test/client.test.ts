import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Bough, Conflict, ConnectionFailed, InvalidRequest, LeafConflict, NotFound } from "../src/index.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url });
});
after(() => server.remove());

test("a conversation is stored, listed and read", async () => {
  const session = await bough.create({ title: "Weather", metadata: { user: "u1" } });
  const asked = await session.append("Will it rain?");
  const reply = { role: "assistant", content: [{ type: "text", text: "No." }], stop_reason: "end_turn" };
  const answered = await session.append(reply, { format: "anthropic" });
  assert.equal(answered.parent_id, asked.entry_id);
  assert.equal((await session.meta()).active_leaf, answered.entry_id);
  const texts = (await all(session.messages())).map((item) => textOf(item.message));
  assert.deepEqual(texts, ["Will it rain?", "No."]);
  const listed = await all(bough.list({ metadata: { user: "u1" } }));
  assert.deepEqual(listed.map((meta) => meta.title), ["Weather"]);
});

test("lists are read page by page", async () => {
  for (const number of [1, 2, 3, 4, 5]) await bough.ensure(`page-${number}`);
  const ids = (await all(bough.list({ idPrefix: "page-", pageSize: 2 }))).map((meta) => meta.session_id);
  assert.deepEqual(ids.sort(), ["page-1", "page-2", "page-3", "page-4", "page-5"]);
});

test("several entries are one commit that makes its session", async () => {
  const session = bough.session("trip");
  const both = await session.appendMany(
    [{ message: { role: "user", content: "Book a train" } }, { custom: { custom_type: "budget", data: 120 } }],
    { create: true },
  );
  assert.equal(both.length, 2);
  const page = await session.entries({ customType: "budget", order: "newest", limit: 1 });
  assert.equal(page.entries[0]?.custom?.data, 120);
});

test("a leaf that moved is a conflict that says where it is", async () => {
  const session = await bough.create();
  const first = await session.append("one");
  const second = await session.append("two");
  await assert.rejects(session.append("three", { expectedLeaf: first.entry_id }), (error) => {
    assert.ok(error instanceof LeafConflict && error instanceof Conflict);
    assert.equal(error.activeLeaf, second.entry_id);
    return true;
  });
});

test("branches are switched, labelled and forked", async () => {
  const session = await bough.create({ title: "Tree" });
  const root = await session.append("root");
  const left = await session.append("left");
  await session.append("right", { parentId: root.entry_id });
  assert.equal((await all(session.branches())).length, 2);
  await session.switchTo(left.entry_id);
  await session.label(left.entry_id, "kept");
  const texts = (await all(session.messages())).map((item) => textOf(item.message));
  assert.deepEqual(texts, ["root", "left"]);
  const fork = await session.fork(left.entry_id, { title: "Copy" });
  assert.equal((await fork.meta()).forked_from, session.id);
});

test("metadata are merged and removed", async () => {
  const session = await bough.create({ metadata: { user: "u2", draft: true } });
  const meta = await session.setMeta({ title: "New", metadata: { draft: null, city: "Oslo" } });
  assert.deepEqual([meta.title, meta.metadata], ["New", { user: "u2", city: "Oslo" }]);
});

test("what was said is found", async () => {
  const session = await bough.create({ title: "Ledger" });
  await session.append("the quokka is a marsupial");
  const found = await bough.search("quokka");
  assert.equal(found.hits[0]?.meta.session_id, session.id);
});

test("a deleted session comes back", async () => {
  const session = await bough.create();
  assert.equal(await session.delete(), true);
  assert.equal(await session.exists(), false);
  await bough.undelete(session.id);
  assert.equal(await session.exists(), true);
});

test("refusals are errors by what can be done about them", async () => {
  await assert.rejects(bough.session("nobody").meta(), NotFound);
  const session = await bough.create();
  await assert.rejects(session.append({ role: "nobody", content: "x" }), InvalidRequest);
  const nowhere = new Bough({ url: "http://127.0.0.1:9", retries: { attempts: 2, firstPause: 1, longestPause: 1 } });
  await assert.rejects(nowhere.create(), ConnectionFailed);
});

test("an answer that is lost on the way is no second entry", async () => {
  let lost = 0;
  const seen = new Set<string>();
  const lossy: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const request = `${init?.method} ${String(input)} ${String(init?.body)}`;
    if (init?.method === "GET" || seen.has(request)) return response;
    seen.add(request);
    lost += 1;
    throw new TypeError("fetch failed");
  };
  const client = new Bough({ url: server.url, fetch: lossy, retries: { attempts: 4, firstPause: 1, longestPause: 1 } });
  const session = await client.create({ title: "Lossy" });
  await session.append("once");
  await session.appendMany([{ message: { role: "user", content: "twice" } }]);
  await session.stream(async (reply) => reply.text("streamed"), { joinInterval: 0 });
  const texts = (await all(session.messages())).map((item) => textOf(item.message));
  assert.deepEqual(texts, ["once", "twice", "streamed"]);
  assert.ok(lost >= 5, `${lost} answers were lost`);
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Bough, Conflict, DocumentConflict, InvalidRequest } from "../src/index.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url });
});
after(() => server.remove());

for (const key of ["a", "a/b", ".", "..", "a,b", "a b?c#d", "ünïcode", "%2F", "a//b"]) {
  test(`a document is put, read and deleted by the key ${key}`, async () => {
    const documents = bough.documents(`keys ${key.length}/${key}`);
    assert.equal(await documents.get(key), undefined);
    const version = await documents.put(key, { n: 1 });
    const found = await documents.get(key);
    assert.deepEqual([found?.key, found?.version, found?.value], [key, version, { n: 1 }]);
    assert.deepEqual((await documents.getMany(["x", key])).map((one) => one.key), [key]);
    assert.deepEqual((await all(documents.list({ prefix: key }))).map((one) => one.key), [key]);
    assert.equal(await documents.delete(key), true);
    assert.equal(await documents.delete(key), false);
    assert.equal(await documents.get(key), undefined);
  });
}

test("versions are compared", async () => {
  const documents = bough.documents("versions");
  const first = await documents.put("a", null, { expectedVersion: 0 });
  assert.equal((await documents.get("a"))?.value, null);
  await assert.rejects(documents.put("a", 2, { expectedVersion: 0 }), (error) => {
    assert.ok(error instanceof DocumentConflict && error instanceof Conflict);
    assert.deepEqual([error.key, error.version], ["a", first]);
    return true;
  });
  const second = await documents.put("a", 2, { expectedVersion: first });
  await assert.rejects(documents.delete("a", { expectedVersion: first }), DocumentConflict);
  assert.equal(await documents.delete("a", { expectedVersion: second }), true);
});

test("a batch is all or none, and lists come page by page", async () => {
  const documents = bough.documents("batches");
  const refused = documents.write({ put: [{ key: "a", value: 1 }, { key: "b", value: 2, expected_version: 7 }] });
  await assert.rejects(refused, DocumentConflict);
  assert.deepEqual(await all(documents.list()), []);
  const put = [0, 1, 2, 3, 4, 5, 6].map((value) => ({ key: `k${value}`, value }));
  assert.equal((await documents.write({ put })).documents.length, 7);
  assert.deepEqual((await all(documents.list({ pageSize: 3 }))).map((one) => one.value), [0, 1, 2, 3, 4, 5, 6]);
  assert.ok((await all(documents.list({ keysOnly: true }))).every((one) => !("value" in one)));
  assert.equal((await documents.write({ delete: [{ key: "k0" }, { key: "x" }] })).deleted, 1);
  await assert.rejects(documents.put("", 1), InvalidRequest);
});

test("entries are hidden, and whole sessions forked under a chosen id", async () => {
  const session = await bough.create({ title: "Tree" });
  const root = await session.append("root");
  const left = await session.append("left");
  await session.append("right", { parentId: root.entry_id });
  const fork = await session.fork(undefined, { newSessionId: "whole-fork", whole: true, keepIds: true });
  assert.equal(fork.id, "whole-fork");
  assert.equal((await all(fork.branches())).length, 2);
  assert.equal((await fork.entry(left.entry_id)).entry_id, left.entry_id);
  assert.equal(await session.hide([root.entry_id]), 1);
  assert.equal(await session.hide([root.entry_id]), 0);
  assert.deepEqual((await all(session.messages())).map((item) => textOf(item.message)), ["right"]);
});

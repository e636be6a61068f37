/** The store, beside the framework's own store in memory: the same calls have the same results. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { BaseStore, InMemoryStore, InvalidNamespaceError, type Item } from "@langchain/langgraph-checkpoint";

import { BoughStore } from "../src/langgraph.js";
import { Server } from "./server.js";

let server: Server;

before(async () => {
  server = await Server.start();
});
after(() => server.remove());

const newStore = (): BoughStore => new BoughStore(server.url, { scope: randomUUID() });

/** What a program can compare of items, in one order. */
function plain(items: Item[]): unknown[] {
  const parts = items.map(({ namespace, key, value }) => JSON.stringify([namespace, key, value]));
  return parts.sort().map((part) => JSON.parse(part) as unknown);
}

async function fill(store: BaseStore): Promise<void> {
  await store.put(["users", "alice"], "prefs", { theme: "dark", level: 3, tags: ["a", "b"], home: { city: "Oslo", floor: 2 } });
  await store.put(["users", "bob"], "prefs", { theme: "light", level: 1, tags: [], home: { city: "Rome" } });
  await store.put(["users", "bob"], "notes", { theme: "dark", level: 7 });
  await store.put(["docs", "a_%"], "x/y", { theme: "dark", level: 5 });
}

/** Does the same with both stores and compares the results. */
function same(name: string, work: (store: BaseStore) => Promise<unknown>): void {
  test(name, async () => {
    const [expected, found] = await Promise.all([new InMemoryStore(), newStore()].map(async (store) => {
      await fill(store);
      return work(store);
    }));
    assert.deepEqual(found, expected);
  });
}

same("an item is found by its namespace and key", async (store) => [
  plain([await store.get(["users", "alice"], "prefs")].filter((item) => item !== null)),
  plain([await store.get(["docs", "a_%"], "x/y")].filter((item) => item !== null)),
  await store.get(["users"], "prefs"),
  await store.get(["users", "alice"], "x"),
]);

for (const filter of [
  { theme: "dark" },
  { level: { $gt: 1, $lte: 5 } },
  { level: { $ne: 3 } },
  { theme: { $eq: "light" } },
  { theme: "none" },
]) {
  same(`a search finds what has ${JSON.stringify(filter)}`, async (store) => plain(await store.search([], { filter })));
}

same("a search keeps to its namespace", async (store) => plain(await store.search(["users", "bob"])));

same("namespaces are listed by prefix, suffix and depth", async (store) => [
  await store.listNamespaces(),
  await store.listNamespaces({ prefix: ["users"] }),
  await store.listNamespaces({ suffix: ["bob"] }),
  await store.listNamespaces({ prefix: ["*", "alice"] }),
  await store.listNamespaces({ maxDepth: 1 }),
  await store.listNamespaces({ limit: 1, offset: 1 }),
]);

same("a batch sees what was there before it", async (store) => {
  const results = await store.batch([
    { namespace: ["users", "bob"], key: "notes", value: null },
    { namespace: ["users", "bob"], key: "notes" },
    { namespacePrefix: ["users", "bob"] },
    { namespace: ["new"], key: "a", value: { n: 1 } },
    { namespace: ["new"], key: "a", value: { n: 2 } },
  ]);
  const items = [results[1], ...((results[2] ?? []) as Item[])] as Item[];
  return [plain(items), await store.get(["users", "bob"], "notes"), (await store.get(["new"], "a"))?.value];
});

test("nested values are compared, and pages are cut", async () => {
  const store = newStore();
  await fill(store);
  const keys = async (filter: { [name: string]: unknown }): Promise<string[]> =>
    (await store.search([], { filter })).map(({ namespace }) => namespace.join("/"));
  assert.deepEqual(await keys({ home: { city: "Oslo" } }), ["users/alice"]);
  assert.deepEqual(await keys({ home: { floor: { $gte: 2 } } }), ["users/alice"]);
  assert.deepEqual(await keys({ tags: ["a", "b"] }), ["users/alice"]);
  assert.equal((await store.search([], { limit: 2 })).length, 2);
  assert.equal((await store.search([], { limit: 5, offset: 3 })).length, 1);
  await assert.rejects(store.search([], { filter: { level: { $in: [1] } } }), /Unsupported operator/);
  await assert.rejects(store.put([], "a", {}), InvalidNamespaceError);
});

test("an item keeps when it was made", async () => {
  const store = newStore();
  await store.put(["a"], "k", { n: 1 });
  const first = await store.get(["a"], "k");
  await store.put(["a"], "k", { n: 2 });
  const second = await store.get(["a"], "k");
  assert.deepEqual(second?.createdAt, first?.createdAt);
  assert.ok((second?.updatedAt ?? 0) >= (first?.updatedAt ?? 0));
  await store.delete(["a"], "k");
  assert.equal(await store.get(["a"], "k"), null);
});

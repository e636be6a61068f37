import assert from "node:assert/strict";
import { test } from "node:test";
import { foldRuns } from "../src/tree/fold";
import { endBelow, layOut, whereTheyPart } from "../src/tree/layout";
import type { TreeEntry } from "../src/tree/source";

function entries(text: string): TreeEntry[] {
  return text.split(" ").map((pair) => {
    const [id = "", parent] = pair.split("<");
    return { id, parent, kind: "user", preview: "", tool: "", at: 0, hasFailed: false };
  });
}

const placed = (text: string, leaf?: string) => layOut(entries(text), leaf).nodes.map((node) => `${node.entry.id}:${node.depth}/${node.lane}`).join(" ");

test("the active path has the first lane, whichever came first", () => {
  assert.equal(placed("a b<a c<a", "b"), "a:0/0 b:1/0 c:1/1");
  assert.equal(placed("a b<a c<a", "c"), "a:0/0 b:1/1 c:1/0");
});

test("branches that do not meet share a lane, and others do not", () => {
  assert.equal(placed("a b<a c<b d<c e<d x<a y<d", "e"), "a:0/0 b:1/0 x:1/1 c:2/0 d:3/0 e:4/0 y:4/1");
  const layout = layOut(entries("a b<a c<b x<a y<x z<a"), "c");
  const places = layout.nodes.map((node) => `${node.depth}/${node.lane}`);
  assert.equal(new Set(places).size, places.length);
});

test("no two entries have one place in any tree", () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 50; round += 1) {
    const ids = Array.from({ length: 60 }, (_, at) => (at === 0 || random(20) === 0 ? `n${at}` : `n${at}<n${random(at)}`));
    const layout = layOut(entries(ids.join(" ")), `n${random(60)}`);
    assert.equal(layout.nodes.length, 60);
    assert.equal(new Set(layout.nodes.map((node) => `${node.depth}/${node.lane}`)).size, 60);
  }
});

test("a long chain is laid out without recursion", () => {
  const chain = Array.from({ length: 10_000 }, (_, at) => (at === 0 ? "n0" : `n${at}<n${at - 1}`));
  const layout = layOut(entries(chain.join(" ")), "n9999");
  assert.equal(layout.depth, 10_000);
  assert.equal(layout.lanes, 1);
});

test("two branches part at their last common entry", () => {
  const { byId } = layOut(entries("a b<a c<b d<b e<d other"), "c");
  const at = (id: string) => byId.get(id) as NonNullable<ReturnType<typeof byId.get>>;
  assert.equal(whereTheyPart(at("c"), at("e"))?.entry.id, "b");
  assert.equal(whereTheyPart(at("c"), at("other")), undefined);
  assert.equal(endBelow(at("a")).entry.id, "c");
  assert.equal(endBelow(at("d")).entry.id, "e");
});

test("straight runs of a large tree are one row each, unless something in them must be seen", () => {
  const chain = Array.from({ length: 1_000 }, (_, at) => (at === 0 ? "n0" : `n${at}<n${at - 1}`));
  const layout = layOut(entries([...chain, "aside<n500"].join(" ")), "n999");
  const none: ReadonlySet<string> = new Set();
  const rows = (kept: ReadonlySet<string>, opened: ReadonlySet<string>) => foldRuns(layout, { kept, opened });
  const folded = rows(none, none);
  assert.equal(folded.length, 2 + 3 + 6 + 2 + 2 + 3 + 6 + 2 - 1);
  const drawn = layOut(folded, "n999");
  assert.equal(drawn.lanes, 2);
  assert.deepEqual(drawn.nodes.filter((node) => node.entry.kind === "folded").map((node) => node.entry.preview), ["… 490 entries", "… 488 entries"]);
  assert.ok(drawn.nodes.every((node) => node.depth === 0 || node.parent !== undefined), "the rows hang together");
  assert.ok(rows(new Set(["n250"]), none).some((entry) => entry.id === "n250"));
  assert.equal(rows(none, new Set(folded.filter((entry) => entry.kind === "folded").map((entry) => entry.id))).length, 1_001);
  assert.equal(foldRuns(layOut(entries(chain.slice(0, 200).join(" ")), undefined), { kept: none, opened: none }).length, 200, "a small tree is whole");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_FILTERS } from "../src/router";
import { withRows as placed } from "../src/sessions/list";
import { metadataFilter } from "../src/sessions/addresses";
import { loadRows, searchText, type Row } from "../src/sessions/source";

function row(session_id: string, updated_at: number): Row {
  return { meta: { session_id, updated_at, title: "", description: "", status: "idle", created_at: 0, message_count: 0 } };
}

const withRows = (...rest: Parameters<typeof placed>) => placed(...rest).rows;
const ids = (rows: Row[]) => rows.map((row) => row.meta.session_id).join(" ");

test("a changed session moves to the head, and one that the filters stop goes", () => {
  const rows = [row("c", 3), row("b", 2), row("a", 1)];
  assert.equal(ids(withRows(rows, ["a"], [row("a", 9)], false)), "a c b");
  assert.equal(ids(withRows(rows, ["b"], [], false)), "c a");
  assert.equal(ids(withRows(rows, ["new"], [row("new", 10)], true)), "new c b a");
});

test("a session behind the pages that were read comes with its page", () => {
  const rows = [row("c", 3), row("b", 2)];
  assert.equal(ids(withRows(rows, ["old"], [row("old", 1)], true)), "c b");
  assert.deepEqual([...placed(rows, ["old", "b"], [row("old", 1), row("b", 4)], true).left], ["old"]);
  assert.equal(ids(withRows(rows, ["old"], [row("old", 1)], false)), "c b old");
});

test("a search goes on until it finds what the filters let through", async (t) => {
  const pages = 40;
  const fetched = t.mock.method(globalThis, "fetch", async (path: string) => {
    const at = Number(new URL(path, "http://local").searchParams.get("cursor") ?? 0);
    const meta = { ...row(`s${at}`, at).meta, status: at === pages ? "error" : "done" };
    return Response.json({ hits: [{ meta }], next_cursor: at === pages ? undefined : String(at + 1) });
  });
  const page = await loadRows({ ...NO_FILTERS, text: "word", status: "error" }, undefined, new AbortController().signal);
  assert.equal(ids(page.rows), `s${pages}`);
  assert.equal(fetched.mock.callCount(), pages + 1);
});

test("the word that is being typed is the beginning of one", () => {
  const text = (changes: object) => searchText({ ...NO_FILTERS, ...changes });
  assert.equal(text({ text: "fix pars" }), "fix pars*");
  assert.equal(text({ text: 'fix "exact ' }), 'fix "exact"');
  assert.equal(text({ text: "tool:bash" }), "tool:bash");
  assert.equal(text({ text: "a ", agent: 'the "best"', since: "7d" }), 'a* agent:"the best" after:7d');
});

test("metadata are compared as JSON where they are JSON", () => {
  assert.equal(metadataFilter("owner=u_1"), '{"owner":"u_1"}');
  assert.equal(metadataFilter("count=3"), '{"count":3}');
  assert.equal(metadataFilter("a=b=c"), '{"a":"b=c"}');
  assert.equal(metadataFilter("owner"), undefined);
});

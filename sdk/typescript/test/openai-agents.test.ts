/**
 * The contracts of the session in the OpenAI Agents SDK, as `test/memorySession.test.ts` and `test/hitlMemorySessionScenario.test.ts`
 * of its repository state them (npm's package has no tests), and what ours promises beside them.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Agent, type AgentInputItem, run, setTracingDisabled, tool, Usage } from "@openai/agents-core";
import { modelResponder, ScriptedModel } from "@openai/agents-core/testing";
import { z } from "zod";

import { Bough } from "../src/index.js";
import { BoughSession } from "../src/openai-agents.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;

before(async () => {
  setTracingDisabled(true);
  server = await Server.start();
  bough = new Bough({ url: server.url });
});
after(() => server.remove());

const said = (text: string): AgentInputItem => ({ role: "user", content: [{ type: "input_text", text }] });

async function sessionWith(id: string, ...items: AgentInputItem[]): Promise<BoughSession> {
  const session = new BoughSession(id, bough);
  await session.addItems(items);
  return session;
}

test("items are stored, read, popped and cleared", async () => {
  const session = await sessionWith("stored", said("hello"));
  assert.equal(await session.getSessionId(), "stored");
  assert.deepEqual(await session.getItems(), [said("hello")]);
  const more = [said("one"), said("two")];
  await session.addItems(more);
  assert.deepEqual(await session.getItems(), [said("hello"), ...more]);
  assert.deepEqual(await session.getItems(2), more);
  assert.deepEqual(await session.getItems(0), []);
  assert.deepEqual(await session.popItem(), more[1]);
  assert.deepEqual(await session.getItems(), [said("hello"), more[0]]);
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  assert.deepEqual(await session.getItems(3), []);
  assert.equal(await session.popItem(), undefined);
  await session.addItems([said("again")]);
  assert.deepEqual(await session.getItems(), [said("again")]);
});

test("a session that was never written is empty", async () => {
  const session = new BoughSession("never", server.url);
  await session.addItems([]);
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await session.popItem(), undefined);
  await session.clearSession();
  assert.equal(await bough.session("never").exists(), false);
});

test("what a program does to items later changes nothing", async () => {
  const item = said("start");
  const session = await sessionWith("copies", item);
  (item as { content: unknown }).content = "changed";
  assert.deepEqual(await session.getItems(), [said("start")]);
});

const ITEMS: AgentInputItem[] = [
  { role: "system", content: "Be short." },
  { type: "message", role: "user", content: "a text", providerData: { note: 1 } },
  { type: "message", role: "user", content: [{ type: "input_image", image: "data:image/png;base64,AAAA" }] },
  {
    type: "message",
    role: "assistant",
    id: "msg_1",
    status: "completed",
    content: [{ type: "output_text", text: "Well…", providerData: { annotations: [] } }],
  },
  { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "Hm" }], rawContent: [{ type: "reasoning_text", text: "Hmm" }] },
  { type: "reasoning", content: [] },
  { type: "function_call", id: "fc_1", callId: "c1", name: "rain", status: "completed", arguments: '{"day": 1}' },
  { type: "function_call_result", callId: "c1", name: "rain", status: "completed", output: { type: "text", text: "no" } },
  { type: "function_call_result", callId: "c2", name: "rain", status: "completed", output: "a plain text" },
  { type: "function_call_result", callId: "c3", name: "rain", status: "completed", output: [{ type: "input_text", text: "parts" }] },
  {
    type: "function_call_result",
    callId: "c4",
    name: "picture",
    status: "completed",
    output: { type: "image", image: { data: new Uint8Array([0, 1, 254, 255]), mediaType: "image/png" } },
  },
  { type: "hosted_tool_call", name: "web_search_call", status: "completed", arguments: "{}" },
  { type: "compaction", encrypted_content: "secret" },
];

test("items of every kind come back as they were", async () => {
  const session = await sessionWith("kinds", ...ITEMS);
  assert.deepEqual(await session.getItems(), ITEMS);
});

test("items that the API does not take are kept", async () => {
  const odd = [{ type: "function_call", name: "no call id" }, said("beside it")] as AgentInputItem[];
  const session = await sessionWith("odd", ...odd);
  assert.deepEqual(await session.getItems(), odd);
});

test("a run is a conversation that anybody can read", async () => {
  await sessionWith("readable", ...ITEMS.slice(6, 8), said("Thanks"));
  const messages = (await all(bough.session("readable").messages())).map((entry) => entry.message);
  assert.deepEqual(messages.map((message) => message?.["role"]), ["assistant", "function_result", "user"]);
  assert.equal(messages[1]?.["function_call_id"], "c1");
  assert.equal(textOf(messages[1]), "no");
});

test("four programs that pop at the same time get every item once", async () => {
  await sessionWith("popped", ...Array.from({ length: 40 }, (_, number) => said(`${number}`)));
  const popAll = async (): Promise<string[]> => {
    const session = new BoughSession("popped", server.url);
    const texts: string[] = [];
    for (let item = await session.popItem(); item !== undefined; item = await session.popItem()) texts.push(textOf(item));
    return texts;
  };
  const popped = (await Promise.all([popAll(), popAll(), popAll(), popAll()])).flat();
  assert.deepEqual(popped.map(Number).sort((one, other) => one - other), Array.from({ length: 40 }, (_, number) => number));
});

test("an item is popped also when an entry that is no item is behind it", async () => {
  const conflict = { code: "session/leaf_conflict", data: { active_leaf: "summary" } };
  const answer = (url: URL): Response => {
    if (url.pathname.endsWith("/tail")) return Response.json({ messages: [{ entry_id: "two", parent_id: null, message: said("two") }] });
    return url.searchParams.get("expected_leaf") === "summary" ? Response.json({}) : Response.json(conflict, { status: 409 });
  };
  const client = new Bough({ url: "http://localhost", fetch: async (input) => answer(new URL(String(input))) });
  assert.deepEqual(await new BoughSession("summed up", client).popItem(), said("two"));
});

const call = (id: string, args: string) =>
  ({ type: "function_call", id, callId: "call-1", name: "lookup", status: "completed", arguments: args }) satisfies AgentInputItem;

for (const ahead of [[said("start")], []]) {
  test(`function calls are replaced, with ${ahead.length} items before them`, async () => {
    const session = await sessionWith(`replaced-${ahead.length}`, ...ahead, call("old-1", '{"ok":false}'), said("between"), call("old-2", "{}"));
    const replacement = call("new", '{"ok":true}');
    const mutations = [{ type: "replace_function_call" as const, callId: "call-1", replacement }];
    await session.applyHistoryMutations({ mutations });
    assert.deepEqual(await session.getItems(), [...ahead, replacement, said("between")]);
  });
}

test("approvals and rejections of tools go on over programs that end", async () => {
  const counts = { echo: 0 };
  const echo = tool({
    name: "echo",
    description: "Says the query again.",
    parameters: z.object({ query: z.string() }),
    needsApproval: async () => true,
    execute: async ({ query }) => {
      counts.echo += 1;
      return `approved:${query}`;
    },
  });
  const queries = ["Fetch", "Update", "Delete"];
  const model = new ScriptedModel(
    queries.map((query, index) =>
      modelResponder(() => ({
        usage: new Usage(),
        output: [
          { type: "function_call", id: `fc_${index}`, callId: `call_${index}`, name: "echo", status: "completed", arguments: JSON.stringify({ query }), providerData: {} },
        ],
      })),
    ),
  );
  for (const [index, query] of queries.entries()) {
    const session = new BoughSession("approvals", server.url);
    const agent = new Agent({ name: "Echo", instructions: "Echo.", model, tools: [echo], toolUseBehavior: "stop_on_first_tool" });
    const first = await run(agent, query, { session });
    const [approval] = first.interruptions;
    assert.ok(approval !== undefined);
    if (query === "Delete") first.state.reject(approval);
    else first.state.approve(approval);
    const resumed = await run(agent, first.state, { session });
    assert.equal(resumed.interruptions.length, 0);
    assert.equal(resumed.finalOutput, query === "Delete" ? "Tool execution was not approved." : `approved:${query}`);
    const kinds = (await session.getItems()).map((item) => item.type);
    assert.deepEqual(kinds, Array(index + 1).fill(["message", "function_call", "function_call_result"]).flat());
  }
  assert.equal(counts.echo, 2);
});

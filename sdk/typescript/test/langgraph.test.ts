/** What the checkpointer promises beside the framework's suite, which `tests/typescript` runs. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";

import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph, Command } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

import { Bough, type NewEntry } from "../src/index.js";
import { BoughSaver } from "../src/langgraph.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url });
});
after(() => server.remove());

const USAGE = { usage_metadata: { input_tokens: 5, output_tokens: 2, total_tokens: 7 } } as object;
const CALL = { name: "rain", args: { day: 1 }, id: "call-1", type: "tool_call" as const };

/** Everything of messages that a program can see. */
function plain(messages: BaseMessage[]): unknown[] {
  return messages.map((message) => [message.constructor.name, JSON.parse(JSON.stringify(message)).kwargs]);
}

/** An agent that calls a tool at the first question of a conversation and answers the others. */
function agent(checkpointer: BaseCheckpointSaver) {
  const State = Annotation.Root({ ...MessagesAnnotation.spec, turns: Annotation<number>, notes: Annotation<string> });
  return new StateGraph(State)
    .addNode("model", ({ messages, turns }) => {
      const said = messages.at(-1)?.text;
      const isFirst = messages.length === 1;
      const reply = isFirst
        ? new AIMessage({ id: `ai-${messages.length}`, content: "Let me look.", tool_calls: [CALL], ...USAGE })
        : new AIMessage({ id: `ai-${messages.length}`, content: `You said ${said}` });
      return { messages: [reply], turns: (turns ?? 0) + 1, notes: "the same long note that no checkpoint has to store again ".repeat(3) };
    })
    .addNode("tool", () => ({ messages: [new ToolMessage({ id: "tool-1", content: "no rain", name: "rain", tool_call_id: "call-1" })] }))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tool" : END))
    .addEdge("tool", "model")
    .compile({ checkpointer });
}

const thread = (id: string) => ({ configurable: { thread_id: id } });
const asks = (id: string, content: string) => ({ messages: [new HumanMessage({ id, content })] });

test("a run has the same states as with the framework's own saver", async () => {
  const states = async (checkpointer: BaseCheckpointSaver): Promise<unknown[]> => {
    const graph = agent(checkpointer);
    await graph.invoke(asks("h1", "Will it rain?"), thread("same"));
    await graph.invoke(asks("h2", "Sure?"), thread("same"));
    const history = await all(graph.getStateHistory(thread("same")));
    return history.map(({ values, next, metadata }) => [plain(values.messages ?? []), values.turns, values.notes, next, metadata?.source, metadata?.step]);
  };
  assert.deepEqual(await states(new BoughSaver(bough)), await states(new MemorySaver()));
});

test("a thread is a conversation that anybody can read, each message once", async () => {
  const graph = agent(new BoughSaver(bough));
  await graph.invoke(asks("h1", "Will it rain?"), thread("readable"));
  await graph.invoke(asks("h2", "Sure?"), thread("readable"));
  const session = bough.session("readable");
  const messages = (await all(session.messages())).map((entry) => entry.message);
  assert.deepEqual(messages.map((message) => message?.["role"]), ["user", "assistant", "function_result", "assistant", "user", "assistant"]);
  assert.deepEqual(messages.map(textOf), ["Will it rain?", "Let me look.", "no rain", "You said no rain", "Sure?", "You said Sure?"]);
  assert.equal((await session.usage()).session.total.output, 2);
  const everywhere = (await session.entries({ limit: 500 })).entries.filter((entry) => entry.message !== undefined);
  assert.equal(everywhere.length, 6);
});

test("another process goes on with a thread", async () => {
  await agent(new BoughSaver(server.url)).invoke(asks("h1", "Will it rain?"), thread("another"));
  const { messages, turns } = await agent(new BoughSaver(server.url)).invoke(asks("h2", "Sure?"), thread("another"));
  assert.deepEqual(messages.map((message) => message.text), ["Will it rain?", "Let me look.", "no rain", "You said no rain", "Sure?", "You said Sure?"]);
  assert.equal(turns, 3);
});

test("a run that goes on from an earlier checkpoint is a branch", async () => {
  const graph = agent(new BoughSaver(bough));
  await graph.invoke(asks("h1", "Will it rain?"), thread("branches"));
  const { config } = await graph.getState(thread("branches"));
  await graph.invoke(asks("h2", "Sure?"), thread("branches"));
  const again = await graph.invoke(asks("h3", "Really?"), config);
  assert.equal(again.messages.at(-1)?.text, "You said Really?");
  assert.equal(again.messages.length, 6);
  assert.deepEqual((await all(bough.session("branches").messages())).slice(4).map((entry) => textOf(entry.message)), ["Really?", "You said Really?"]);
});

test("messages that are changed and removed are as the channel has them", async () => {
  const graph = agent(new BoughSaver(bough));
  await graph.invoke(asks("h1", "Will it rain?"), thread("changed"));
  await graph.updateState(thread("changed"), { messages: [new RemoveMessage({ id: "tool-1" }), new HumanMessage({ id: "h1", content: "Will it snow?" })] });
  const fresh = await agent(new BoughSaver(server.url)).getState(thread("changed"));
  assert.deepEqual(fresh.values.messages.map((message: BaseMessage) => message.text), ["Will it snow?", "Let me look.", "You said no rain"]);
});

test("a run that waits for a person goes on in another process", async () => {
  const build = (checkpointer: BaseCheckpointSaver) =>
    new StateGraph(MessagesAnnotation)
      .addNode("ask", () => ({ messages: [new AIMessage({ id: "a", content: `You said ${interrupt("Sure?")}` })] }))
      .addEdge(START, "ask")
      .compile({ checkpointer });
  await build(new BoughSaver(server.url)).invoke(asks("h1", "Go"), thread("waits"));
  const waiting = await build(new BoughSaver(server.url)).getState(thread("waits"));
  assert.equal(waiting.tasks[0]?.interrupts[0]?.value, "Sure?");
  const { messages } = await build(new BoughSaver(server.url)).invoke(new Command({ resume: "yes" }), thread("waits"));
  assert.deepEqual(messages.map((message) => message.text), ["Go", "You said yes"]);
});

test("a thread that another saver began goes on with its versions", () => {
  const next = new BoughSaver(bough).getNextVersion("00000000000000000000000000000002.0.5" as unknown as number);
  assert.match(String(next), /^0{31}3\.0\.\d{14}$/);
});

test("a thread of the Python package is read, and goes on", async () => {
  // What boughdb.langgraph stored of two questions to the same agent, in Python.
  const fixture = new URL("../../test/python-thread.json", import.meta.url);
  await bough.session("python").appendMany(JSON.parse(await readFile(fixture, "utf8")) as NewEntry[], { create: true });
  const graph = agent(new BoughSaver(bough));
  const { values } = await graph.getState(thread("python"));
  const kinds = ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage", "HumanMessage", "AIMessage"];
  assert.deepEqual(values.messages.map((message: BaseMessage) => message.constructor.name), kinds);
  assert.deepEqual((values.messages[1] as AIMessage).tool_calls, [{ ...CALL, id: "c1" }]);
  assert.equal(values.turns, 3);
  assert.equal((await all(graph.getStateHistory(thread("python")))).length, 8);
  const { messages } = await graph.invoke(asks("h3", "Really?"), thread("python"));
  assert.deepEqual(messages.slice(4).map((message) => message.text), ["Sure?", "You said Sure?", "Really?", "You said Really?"]);
});

test("messages of every kind come back as they were", async () => {
  const messages = [
    new SystemMessage("Be short."),
    new HumanMessage({ id: "h", content: [{ type: "text", text: "Look:" }, { type: "image_url", image_url: { url: "data:," } }], name: "Ann" }),
    new AIMessage({ id: "a", content: "", tool_calls: [CALL], response_metadata: { model_name: "m", finish_reason: "tool_calls" } }),
    new AIMessage({ content: "No type", tool_calls: [{ name: "rain", args: {}, id: "c2" }], additional_kwargs: { extra: [1, null] } }),
    new AIMessage({ content: "invalid", invalid_tool_calls: [{ name: "x", args: "{", id: "c3", error: "bad", type: "invalid_tool_call" }] }),
    new AIMessageChunk({ content: "piece", tool_call_chunks: [{ name: "rain", args: '{"day":', id: "c4", index: 0, type: "tool_call_chunk" }] }),
    new ToolMessage({ content: "failed", tool_call_id: "call-1", status: "error", artifact: { big: new Map([[1, 2]]) } }),
    new HumanMessage({ id: "half", content: "half \ud800 pair" }),
    new HumanMessage({ content: "bytes", additional_kwargs: { bytes: new Uint8Array([1, 255]) } }),
  ];
  const checkpoint = { v: 4, id: "c-1", ts: "2026-01-01T00:00:00Z", channel_values: { messages }, channel_versions: { messages: 1 }, versions_seen: {} };
  await new BoughSaver(server.url).put(thread("kinds"), checkpoint, { source: "input", step: 0, parents: {} }, { messages: 1 });
  const tuple = await new BoughSaver(server.url).getTuple(thread("kinds"));
  const back = tuple?.checkpoint.channel_values["messages"] as BaseMessage[];
  assert.deepEqual(plain(back), plain(await new MemorySaver().serde.loadsTyped("json", (await new MemorySaver().serde.dumpsTyped(messages))[1])));
});

test("values that JSON does not say exactly come back as they were", async () => {
  const values = { undefined: undefined, map: new Map([["a", new Set([1])]]), list: [1.5, "é", null], bytes: new Uint8Array([7]) };
  const versions = Object.fromEntries(Object.keys(values).map((name) => [name, 1]));
  const checkpoint = { v: 4, id: "c-1", ts: "2026-01-01T00:00:00Z", channel_values: values, channel_versions: versions, versions_seen: {} };
  await new BoughSaver(bough).put(thread("values"), checkpoint, { source: "input", step: 0, parents: {} }, versions);
  const tuple = await new BoughSaver(server.url).getTuple(thread("values"));
  assert.deepEqual(tuple?.checkpoint.channel_values, values);
});

test("with a serializer of its own, nothing is stored readably", async () => {
  const { serde } = new MemorySaver();
  const hidden = {
    dumpsTyped: async (value: unknown): Promise<[string, Uint8Array]> => {
      const [kind, bytes] = await serde.dumpsTyped(value);
      return [kind, bytes.map((byte) => byte ^ 0x55)];
    },
    loadsTyped: (kind: string, bytes: Uint8Array | string) => serde.loadsTyped(kind, (bytes as Uint8Array).map((byte) => byte ^ 0x55)),
  };
  const graph = agent(new BoughSaver(bough, { serde: hidden }));
  await graph.invoke(asks("h1", "A secret"), thread("hidden"));
  assert.equal((await graph.getState(thread("hidden"))).values.messages.length, 4);
  const stored = await bough.session("hidden").entries({ limit: 500 });
  assert.ok(!JSON.stringify(stored).includes("secret"));
});

test("a long conversation costs a few times its text", async () => {
  const graph = agent(new BoughSaver(bough));
  const turns = 30;
  const text = "word ".repeat(400);
  for (let turn = 0; turn < turns; turn += 1) await graph.invoke(asks(`h${turn}`, `${turn} ${text}`), thread("long"));
  const session = bough.session("long");
  let bytes = 0;
  let cursor: string | undefined;
  do {
    const page = await session.entries({ limit: 500, ...(cursor !== undefined && { cursor }) });
    bytes += JSON.stringify(page.entries).length;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  // Each text is said by the user and again in the reply.
  const said = turns * 2 * text.length;
  assert.ok(bytes / said < 3, `${(bytes / said).toFixed(2)} times the text`);
});

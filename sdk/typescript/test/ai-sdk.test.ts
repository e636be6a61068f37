import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";

import { BoughChatStore } from "../src/ai-sdk.js";
import { replay } from "../src/ai-sdk/replay.js";
import { Bough, type Entry, type Session, type Watch } from "../src/index.js";
import { all, Server, textOf } from "./server.js";

let server: Server;
let bough: Bough;
let chats: BoughChatStore;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url });
  chats = new BoughChatStore(bough);
});
after(() => server.remove());

const asks = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

const TEXT: UIMessageChunk[] = [
  { type: "start", messageId: "a1" },
  { type: "start-step" },
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "No, " },
  { type: "text-delta", id: "1", delta: "it will not." },
  { type: "text-end", id: "1" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];

/** A reply with parts of most kinds. */
const RICH: UIMessageChunk[] = [
  { type: "start", messageId: "a1", messageMetadata: { model: "fake" } },
  { type: "start-step" },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "Hm. " },
  { type: "reasoning-end", id: "r", providerMetadata: { fake: { signature: "s" } } },
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "Let me look." },
  { type: "text-end", id: "1" },
  { type: "tool-input-available", toolCallId: "c1", toolName: "rain", input: { day: 1 } },
  { type: "tool-input-available", toolCallId: "c2", toolName: "snow", input: {}, dynamic: true },
  { type: "tool-output-error", toolCallId: "c2", errorText: "no snow", dynamic: true },
  { type: "tool-output-available", toolCallId: "c1", output: { rain: [0, 0.5] } },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "source-url", sourceId: "s1", url: "https://example.org/", title: "Weather" },
  { type: "data-chart", id: "d1", data: { points: [1, 2] } },
  { type: "text-start", id: "2" },
  { type: "text-delta", id: "2", delta: "It will not." },
  { type: "text-end", id: "2" },
  { type: "text-start", id: "3" },
  { type: "text-delta", id: "3", delta: "Really." },
  { type: "text-end", id: "3" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop", messageMetadata: { tokens: 7 } },
];

function streamOf(chunks: UIMessageChunk[]): ReadableStream<UIMessageChunk> {
  return new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
}

/** A reply whose chunks come when the test says so. */
function slowReply(): { stream: ReadableStream<UIMessageChunk>; say: (chunks: UIMessageChunk[]) => void; end: () => void } {
  let controller: ReadableStreamDefaultController<UIMessageChunk> | undefined;
  const stream = new ReadableStream<UIMessageChunk>({ start: (given) => void (controller = given) });
  return { stream, say: (chunks) => chunks.forEach((chunk) => controller?.enqueue(chunk)), end: () => controller?.close() };
}

/** The message that a stream tells, as the AI SDK puts it together. Whether its texts are complete is left out. */
async function told(chunks: ReadableStream<UIMessageChunk>): Promise<UIMessage> {
  const states = await all(readUIMessageStream({ stream: chunks }));
  return plain(states.at(-1) as UIMessage);
}

function plain(message: UIMessage): UIMessage {
  const parts = message.parts.map((part) => {
    if (part.type !== "text" && part.type !== "reasoning") return part;
    const { state: _state, ...rest } = part;
    return rest;
  });
  return JSON.parse(JSON.stringify({ ...message, parts })) as UIMessage;
}

/** A message without what is known of it only at its end. */
function said({ id, role, parts }: UIMessage): unknown {
  return { id, role, parts: parts.map((part) => (part.type === "reasoning" ? part.text : part)) };
}

async function recorded(chatId: string, chunks: UIMessageChunk[]): Promise<void> {
  await all(await chats.record(chatId, streamOf(chunks)));
}

test("messages are saved once and loaded as they were", async () => {
  assert.deepEqual(await chats.load("saved"), []);
  const messages = [asks("u1", "Will it rain?"), { ...asks("u2", "Hello?"), metadata: { at: 1 } }];
  await chats.save("saved", messages.slice(0, 1));
  await chats.save("saved", messages);
  await chats.save("saved", messages);
  assert.deepEqual(await chats.load("saved"), messages);
  assert.equal((await bough.session("saved").entries({ limit: 100 })).entries.length, 2);
});

for (const [name, chunks] of [["a text", TEXT], ["most kinds of parts", RICH]] as const) {
  test(`a reply of ${name} is loaded as the AI SDK put it together`, async () => {
    const chatId = `reply of ${name}`;
    await chats.save(chatId, [asks("u1", "Will it rain?")]);
    await recorded(chatId, chunks);
    const loaded = await chats.load(chatId);
    assert.deepEqual(loaded, [asks("u1", "Will it rain?"), await told(streamOf(chunks))]);
    // What the browser has after the stream is no other message.
    const [question, answer] = [asks("u1", "Will it rain?"), (await all(readUIMessageStream({ stream: streamOf(chunks) }))).at(-1)];
    await chats.save(chatId, [question, answer as UIMessage, asks("u2", "Sure?")]);
    assert.equal((await all(bough.session(chatId).branches())).length, 1);
    assert.equal((await chats.load(chatId)).length, 3);
  });
}

test("a chat is a conversation that anybody can read", async () => {
  await chats.save("readable", [asks("u1", "Will it rain?")]);
  await recorded("readable", RICH);
  const messages = (await all(bough.session("readable").messages())).map((entry) => entry.message);
  assert.equal(textOf(messages[0]), "Will it rain?");
  const blocks = messages.flatMap((message) => message?.["content"] as { type: string }[]).map((block) => block.type);
  assert.ok(["thinking", "function_call", "function_result"].every((type) => blocks.includes(type)));
  const stops = messages.slice(1).map((message) => message?.["stop_reason"]);
  assert.equal(stops[1], "function_call");
  assert.equal(stops.at(-1), "end");
});

for (const chunks of [TEXT, RICH]) {
  for (let cut = 1; cut <= chunks.length; cut += chunks === RICH ? 4 : 1) {
    test(`whoever comes after ${cut} of ${chunks.length} chunks is told the whole reply`, async () => {
      const chatId = `resumed ${chunks.length} ${cut}`;
      await chats.save(chatId, [asks("u1", "Will it rain?")]);
      const reply = slowReply();
      const response = await chats.record(chatId, reply.stream);
      reply.say(chunks.slice(0, cut));
      // The first reader leaves, as at a reload.
      await response.cancel();
      const resumed = await chats.resume(chatId);
      assert.ok(resumed !== null);
      const message = told(resumed);
      reply.say(chunks.slice(cut));
      reply.end();
      assert.deepEqual(said(await message), said(await told(streamOf(chunks))));
      assert.equal(await chats.resume(chatId), null);
    });
  }
}

test("a delta that joins read and unread text arrives once", async () => {
  const texts = ["No, ", "No, it will not."];
  const read = (text: string, revision: number): Entry => ({ entry_id: "e1", revision, timestamp: 0, message: { id: "a1", role: "assistant", parts: [{ type: "text", text }] } });
  const session = { messages: async function* () { yield read(texts.shift() ?? "", 2 - texts.length); } };
  const events = [
    { type: "message.delta", cursor: "1", data: { entry_id: "e1", block: 0, kind: "text", text: "No, it will not.", revision: 2 } },
    { type: "session::status-changed", cursor: "2", data: { status: "idle" } },
  ];
  const watch = { next: async () => ({ done: false, value: events.shift() }), close: () => undefined };
  texts.push("No, it will not.");
  const chunks = await all(replay(session as unknown as Session, watch as unknown as Watch));
  assert.equal(chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join(""), "No, it will not.");
});

test("there is nothing to resume where no reply is made", async () => {
  assert.equal(await chats.resume("no chat"), null);
  await chats.save("idle", [asks("u1", "Hello?")]);
  assert.equal(await chats.resume("idle"), null);
});

test("a reply that is made again is a branch", async () => {
  await chats.save("again", [asks("u1", "Will it rain?")]);
  await recorded("again", TEXT);
  await chats.save("again", [asks("u1", "Will it rain?")]);
  assert.deepEqual(await chats.load("again"), [asks("u1", "Will it rain?")]);
  await recorded("again", TEXT.map((chunk) => (chunk.type === "start" ? { ...chunk, messageId: "a2" } : chunk)));
  assert.deepEqual((await chats.load("again")).map((message) => message.id), ["u1", "a2"]);
  assert.equal((await all(bough.session("again").branches())).length, 2);
});

test("a question that is edited is a branch from before it", async () => {
  await chats.save("edited", [asks("u1", "Will it rain?")]);
  await recorded("edited", TEXT);
  await chats.save("edited", [asks("u1", "Will it snow?")]);
  assert.deepEqual(await chats.load("edited"), [asks("u1", "Will it snow?")]);
});

test("a reply goes on after the browser answered its tool", async () => {
  await chats.save("continued", [asks("u1", "Where am I?")]);
  const call: UIMessageChunk = { type: "tool-input-available", toolCallId: "c1", toolName: "where", input: {} };
  await recorded("continued", [{ type: "start", messageId: "a1" }, { type: "start-step" }, call, { type: "finish" }]);
  const [question, asked] = await chats.load("continued");
  assert.ok(question !== undefined && asked !== undefined);
  const parts = asked.parts.map((part) => (part.type === "tool-where" ? { ...part, state: "output-available", output: "Here" } : part));
  const answered = { ...asked, parts } as UIMessage;
  await chats.save("continued", [question, answered]);
  await all(await chats.record("continued", streamOf(TEXT), { continued: answered }));
  const loaded = await chats.load("continued");
  assert.deepEqual(loaded.map((message) => message.id), ["u1", "a1"]);
  assert.deepEqual(loaded[1]?.parts, [...answered.parts, { type: "step-start" }, { type: "text", text: "No, it will not." }]);
});

test("a reply that fails says so", async () => {
  await chats.save("failed", [asks("u1", "Will it rain?")]);
  await recorded("failed", [...TEXT.slice(0, 4), { type: "error", errorText: "the model is away" }]);
  const last = (await all(bough.session("failed").messages())).at(-1)?.message;
  assert.equal(textOf(last), "No, ");
  assert.equal(last?.["stop_reason"], "error");
  assert.equal((await bough.session("failed").meta()).status, "idle");
});

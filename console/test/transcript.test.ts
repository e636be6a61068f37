import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, PathItem } from "../src/api/types";
import { messageAsMarkdown } from "../src/transcript/as_markdown";
import { canEdit, editedMessage, withText } from "../src/transcript/edited";
import { grouped } from "../src/transcript/groups";
import { type LiveMessage, withDelta, withFinish } from "../src/transcript/live";

const assistant = (content: Message["content"]): Message => ({ role: "assistant", content });
const live = (content: Message["content"]): LiveMessage => ({ message: assistant(content), revision: 0, isStreaming: true });

test("deltas grow blocks, begin new ones, and count once", () => {
  let message = live([]);
  message = withDelta(message, { block: 0, kind: "thinking", text: "hm", revision: 1 });
  message = withDelta(message, { block: 1, text: "a", revision: 2 });
  message = withDelta(message, { block: 1, text: "b", revision: 3 });
  message = withDelta(message, { block: 1, text: "b", revision: 3 });
  assert.deepEqual(message.message.content, [
    { type: "thinking", text: "hm" },
    { type: "text", text: "ab" },
  ]);
  const done = withFinish(message, { revision: 4, stop_reason: "end", usage: { output: 2 } });
  assert.equal(done.isStreaming, false);
  assert.equal(done.message.stop_reason, "end");
});

test("results stand with their calls, and alone where the call is not there", () => {
  const call = (id: string) => ({ type: "function_call" as const, id, function_id: "bash", arguments: {} });
  const answer = (entry_id: string, id: string): PathItem => ({ entry_id, message: { role: "function_result", function_call_id: id, content: [] } });
  const groups = grouped([answer("r0", "lost"), { entry_id: "a", message: assistant([call("1"), call("2")]) }, answer("r2", "2"), answer("r1", "1")]);
  assert.deepEqual(groups.map((group) => group.item.entry_id), ["r0", "a"]);
  assert.deepEqual([...(groups[1]?.results.keys() ?? [])].sort(), ["1", "2"]);
});

test("what a tool printed is copied as it is", () => {
  const text = messageAsMarkdown({ role: "function_result", function_id: "bash", content: [{ type: "text", text: "# not a heading\n```\n" }] });
  assert.equal(text, "## Result of bash\n\n````\n# not a heading\n```\n````");
});

test("a fence is longer than those inside", () => {
  const text = messageAsMarkdown(assistant([{ type: "function_call", id: "1", function_id: "write", arguments: { text: "```" } }]));
  assert.match(text, /````json/);
});

test("an edited message keeps what is not text, and costs nothing", () => {
  const picture = { type: "image" as const, mime: "image/png", data: "AAAA" };
  const text = (words: string) => ({ type: "text" as const, text: words });
  assert.deepEqual(withText([text("a"), picture, text("b")], "c"), [text("c"), picture]);
  assert.deepEqual(withText([picture], "c"), [picture, text("c")]);
  const reply: Message = { ...assistant([text("a")]), model: "m", provider: "p", usage: { input: 5 } };
  assert.deepEqual(editedMessage(reply, "b", 7), { role: "assistant", content: [text("b")], timestamp: 7, stop_reason: "end", model: "m", provider: "p" });
  assert.ok(canEdit(reply));
  assert.ok(!canEdit(assistant([{ type: "function_call", id: "1", function_id: "bash", arguments: {} }])));
});

// Stores with very many sessions and entries, made over the API.
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { user } from "./server.mjs";

const BATCH = 500;
const WRITERS = 32;

/** Nothing here is about power cuts, and waiting for the disk a hundred thousand times takes minutes. */
export function withoutWaitingForTheDisk(server) {
  writeFileSync(join(server.data, "config.yaml"), "durability: may_lose_newest_on_power_cut\n");
}

/** For sessions that are only listed: a hundred thousand folders take minutes to make and to remove. */
export function inMemory(server) {
  writeFileSync(join(server.data, "config.yaml"), "adapter:\n  name: memory\n");
}

/** Makes sessions `n0`, `n1` and so on, called “Session 0” and so on. */
export async function makeSessions(server, count) {
  const agent = new Agent({ keepAlive: true, maxSockets: WRITERS });
  let next = 0;
  const write = async () => {
    for (let number = next++; number < count; number = next++) {
      await put(server, agent, `/v1/sessions/n${number}`, { title: `Session ${number}` });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
  agent.destroy();
}

/** A request without the weight of `fetch`, which would take more time than the server. */
function put(server, agent, path, body) {
  const text = JSON.stringify(body);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port: server.port, method: "PUT", path, agent, headers }, (answer) => {
      answer.resume();
      answer.once("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`PUT ${path}: ${answer.statusCode}`))));
    });
    asked.once("error", reject);
    asked.end(text);
  });
}

/** Makes a session whose messages are “Entry 0 of many” and so on, and says the ids of all of them. */
export async function makeLongSession(server, id, count) {
  const ids = [];
  await server.session(id, { title: "Long" });
  for (let first = 0; first < count; first += BATCH) {
    const size = Math.min(BATCH, count - first);
    const { entries } = await server.appendMany(id, Array.from({ length: size }, (_, at) => user(`Entry ${first + at} of many`)));
    ids.push(...entries.map((entry) => entry.entry_id));
  }
  return ids;
}

/** Records loops `ID.1`, `ID.2` and so on, one a minute, each with a question, a call of a tool such as `tool-1`, and an answer after 20 seconds. */
export async function makeLongRecording(server, id, count) {
  for (let first = 0; first < count; first += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - first) }, (_, at) => first + at + 1);
    await server.send("POST", `/record/${id}`, { events: numbers.flatMap((number) => loopEvents(id, number)) });
  }
}

function loopEvents(id, number) {
  const begun = Date.UTC(2026, 10, 1, 8) + number * 60_000;
  const loop = { loop_id: `${id}.${number}` };
  const at = (seconds) => ({ ...loop, timestamp: new Date(begun + seconds * 1_000).toISOString() });
  const usage = { input: 10, output: 5, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 15 };
  const says = (seconds, stopReason, content) => ({ role: "assistant", content, model: "small", provider: "local", stopReason, timestamp: begun + seconds * 1_000, usage });
  const tool = { toolCallId: `call ${number}`, toolName: `tool-${number}` };
  const asks = says(5, "toolUse", [{ type: "toolCall", id: tool.toolCallId, name: tool.toolName, arguments: {} }]);
  const result = { role: "toolResult", ...tool, content: [{ type: "text", text: "Found." }], isError: false, timestamp: begun + 9_000 };
  const answer = says(20, "stop", [{ type: "text", text: `Answer ${number}` }]);
  const question = { role: "user", content: [{ type: "text", text: `Question ${number}` }], timestamp: begun };
  const [parent, kind] = number === 1 ? [null, "Initial"] : [`${id}.${number - 1}`, "Default"];
  return [
    { type: "AgentStart", agent_id: "writer", session_id: id, parent_loop_id: parent, continuation_kind: kind, metadata: null, ...at(0) },
    { type: "TurnStart", turn_index: 0, triggered_by: "User", ...at(0) },
    ...[question, asks, result, answer].map((message) => ({ type: "MessageEnd", message, ...at((message.timestamp - begun) / 1_000) })),
    { type: "TurnEnd", turn_index: 0, message: answer, tool_results: [], usage, ...at(20) },
    { type: "AgentEnd", messages: [], usage, rejection: null, ...at(21) },
  ];
}

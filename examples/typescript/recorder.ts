// Records the events of an agent while it works, and reads the session that they made: `node recorder.ts`.
//
// The events go to `POST /v1/record`, one a line, in one request that stays open; each line of the answer says what is durable.
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";

import { Bough } from "boughdb";

const url = process.env["BOUGH_SERVER"] ?? "http://127.0.0.1:7717";
const usage = { input: 12, output: 3, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 15 };

/** Stands for an agent: one run in which a question is asked and answered. */
async function* agent(sessionId: string): AsyncGenerator<object> {
  const loop_id = `${sessionId}.1`;
  const now = new Date();
  const said = (role: string, text: string, more: object = {}) => ({
    type: "MessageEnd",
    loop_id,
    message: { role, content: [{ type: "text", text }], timestamp: now.getTime(), ...more },
  });
  const start = { agent_id: "example", session_id: sessionId, parent_loop_id: null, continuation_kind: "Initial" };
  yield { type: "AgentStart", loop_id, timestamp: now.toISOString(), ...start };
  yield said("user", "Name a tree.");
  yield said("assistant", "Hazel.", { provider: "local", model: "small", stopReason: "stop", usage });
  yield { type: "AgentEnd", loop_id, messages: [], timestamp: now.toISOString(), usage };
}

const sessionId = `recorded-${randomUUID()}`;
async function* lines(): AsyncGenerator<Uint8Array> {
  for await (const event of agent(sessionId)) yield new TextEncoder().encode(`${JSON.stringify(event)}\n`);
}

const request = {
  method: "POST",
  headers: { "content-type": "application/x-ndjson" },
  body: Readable.toWeb(Readable.from(lines())),
  duplex: "half",
} as unknown as RequestInit;
const answer = await fetch(`${url}/v1/record`, request);
if (!answer.ok) throw new Error(await answer.text());
await answer.text();

for await (const item of new Bough().session(sessionId).messages()) console.log(JSON.stringify(item.message));

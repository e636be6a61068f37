import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Bough, type Event } from "../src/index.js";
import { all, Server, take, textOf } from "./server.js";

const PATIENT = { attempts: 100, firstPause: 10, longestPause: 100 };

let server: Server;
let bough: Bough;

before(async () => {
  server = await Server.start();
  bough = new Bough({ url: server.url, retries: PATIENT });
});
after(() => server.remove());

test("a reply is seen while it is written, and finished with its usage", async () => {
  const session = await bough.create();
  const events = await session.watch({ types: ["message.started", "message.delta", "message.finished"] }).ready();
  const seen: Event[] = [];
  const watching = (async () => {
    for await (const event of events) {
      seen.push(event);
      if (event.type === "message.finished") return;
    }
  })();
  const entryId = await session.stream(
    async (reply) => {
      await reply.text("Roses ");
      while (seen.length < 2) await new Promise((resolve) => setImmediate(resolve));
      await reply.text("are red");
      reply.finish({ usage: { input: 12, output: 3 } });
      return reply.entryId;
    },
    { model: "m-1", joinInterval: 0 },
  );
  await watching;
  assert.equal(seen[0]?.type, "message.started");
  const deltas = seen.filter((event) => event.type === "message.delta");
  assert.equal(deltas.map((event) => event.data["text"]).join(""), "Roses are red");
  const entry = await session.entry(entryId);
  assert.equal(textOf(entry.message), "Roses are red");
  assert.equal((await session.usage()).session.total.output, 3);
});

test("pieces that are written together are sent together", async () => {
  let deltas = 0;
  const counting: typeof fetch = (input, init) => {
    if (String(input).endsWith("/delta")) deltas += 1;
    return fetch(input, init);
  };
  const client = new Bough({ url: server.url, fetch: counting });
  const session = await client.create();
  const words = Array.from({ length: 500 }, (_, number) => `${number} `);
  await session.stream(async (reply) => {
    for (const word of words) await reply.text(word);
  });
  const [reply] = await all(session.messages());
  assert.equal(textOf(reply?.message), words.join(""));
  assert.ok(deltas < 50, `${deltas} requests for 500 words`);
});

test("a writer that throws leaves a reply that says so", async () => {
  const session = await bough.create();
  const broken = session.stream(async (reply) => {
    await reply.text("Half");
    throw new Error("the model went away");
  });
  await assert.rejects(broken, /the model went away/);
  const [reply] = await all(session.messages());
  assert.equal(textOf(reply?.message), "Half");
  assert.equal(reply?.message?.["stop_reason"], "error");
});

test("nothing is lost or repeated when the server is killed", async () => {
  const session = await bough.create();
  const events = await session.watch({ deltas: false }).ready();
  const seen: string[] = [];
  for (let number = 0; number < 30; number += 1) {
    await session.append(String(number));
    if (number % 10 === 5) {
      await server.kill();
      await server.run();
    }
    if (number % 3 === 2) {
      const taken = await take(events, 3);
      seen.push(...taken.map((event) => textOf(event.data["message"])));
    }
  }
  events.close();
  assert.deepEqual(seen, Array.from({ length: 30 }, (_, number) => String(number)));
});

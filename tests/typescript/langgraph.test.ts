/** The suite that LangGraph has for checkpointers, with its part about delta channels. */

import { randomUUID } from "node:crypto";

import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { BoughSaver } from "boughdb/langgraph";
import { afterAll, beforeAll } from "vitest";

import { Server } from "./server.js";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.remove());

const initializer = {
  checkpointerName: "boughdb/langgraph",
  createCheckpointer: () => new BoughSaver(server.url, { prefix: `${randomUUID()}/` }),
};
specTest(initializer);
deltaChannelHistoryTests(initializer);

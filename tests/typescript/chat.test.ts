/** A chat page in Chromium: a reload in the middle of a reply goes on with it. */

import type { Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

import { MockLanguageModelV4 } from "ai/test";
import { BoughChatStore } from "boughdb/ai-sdk";
import { type Browser, chromium, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";

import { chatApp } from "./chat/app.js";
import { Server } from "./server.js";

const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
const NO_TOKENS = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };

/** A model that says what the test tells it to say, when the test does. */
class ToldModel extends MockLanguageModelV4 {
  say: (text: string) => void = () => undefined;
  end: () => void = () => undefined;

  constructor() {
    super({
      doStream: async () => ({
        stream: new ReadableStream({
          start: (controller) => {
            controller.enqueue({ type: "text-start", id: "1" });
            this.say = (text) => controller.enqueue({ type: "text-delta", id: "1", delta: text });
            this.end = () => {
              controller.enqueue({ type: "text-end", id: "1" });
              controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: NO_TOKENS });
              controller.close();
            };
          },
        }),
      }),
    });
  }
}

let bough: Server;
let browser: Browser;
let app: HttpServer;
let page: Page;
const model = new ToldModel();

beforeAll(async () => {
  bough = await Server.start();
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ARGUMENTS });
  app = chatApp(new BoughChatStore(bough.url), model, await bundle());
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  page = await browser.newPage();
}, 60_000);

afterAll(async () => {
  await browser.close();
  app.closeAllConnections();
  app.close();
  await bough.remove();
});

/** The page's script, with the AI SDK in it. */
async function bundle(): Promise<string> {
  const entry = fileURLToPath(new URL("chat/page.ts", import.meta.url));
  const built = await build({ configFile: false, logLevel: "error", build: { write: false, minify: false, target: "es2023", lib: { entry, formats: ["es"] } } });
  const [{ output }] = built as { output: { code: string }[] }[];
  return output[0].code;
}

/** Waits until the page shows these messages and no others. */
async function sees(...texts: string[]): Promise<void> {
  await expect.poll(() => page.locator("li").allTextContents(), { timeout: 20_000 }).toEqual(texts);
}

test("a reload in the middle of a reply goes on with it", async () => {
  await page.goto(`http://127.0.0.1:${(app.address() as AddressInfo).port}/weather`);
  await page.getByLabel("Question").fill("Will it rain?");
  await page.getByRole("button").click();
  await sees("Will it rain?", "");
  model.say("No, ");
  await sees("Will it rain?", "No, ");
  await page.reload();
  await sees("Will it rain?", "No, ");
  model.say("it will ");
  await sees("Will it rain?", "No, it will ");
  await page.reload();
  await sees("Will it rain?", "No, it will ");
  model.say("not.");
  model.end();
  await sees("Will it rain?", "No, it will not.");
  await page.locator("body[data-status=ready]").waitFor();
  await page.reload();
  await sees("Will it rain?", "No, it will not.");
}, 90_000);

test("the conversation goes on after it", async () => {
  await page.getByLabel("Question").fill("Sure?");
  await page.getByRole("button").click();
  await sees("Will it rain?", "No, it will not.", "Sure?", "");
  model.say("Yes.");
  model.end();
  await sees("Will it rain?", "No, it will not.", "Sure?", "Yes.");
  const stored = await new BoughChatStore(bough.url).load("weather");
  expect(stored.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
}, 60_000);

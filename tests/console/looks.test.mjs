import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { assistant, Bough, call, user } from "./server.mjs";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  const long = "A title that goes on and on so that it does not fit on any line of a telephone";
  await server.session("long", { title: long, metadata: { agent: "builder" } });
  await server.append("long", user("word".repeat(200)), { entry_id: "root" });
  await server.append("long", assistant("Left"), { parent_id: "root", entry_id: "left" });
  await server.append("long", assistant("Right"), { parent_id: "root", entry_id: "right" });
  await server.record("recorded", Date.now());
  await server.append("long", assistant([{ type: "text", text: "```\n" + "x".repeat(500) + "\n```" }, call("1", "bash", { command: "y".repeat(300) })]));
});

after(async () => {
  await browser.close();
  await server.stop();
});

const VIEWS = [
  ["#/sessions", ".row"],
  ["#/sessions/long", ".message-assistant"],
  ["#/sessions/long/tree", ".tree-node"],
  ["#/sessions/long/compare?left=left&right=right", ".compare .message"],
  ["#/sessions/recorded/loops", ".bar-loop"],
  ["#/usage", ".chart"],
  ["#/health", ".panel"],
];

const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

test("dark follows the system, can be chosen, and stays chosen", async () => {
  const page = await open(browser, server, "#/sessions", { colorScheme: "dark" });
  await page.locator(".row").first().waitFor();
  const dark = await ground(page);
  await page.getByRole("button", { name: /^Colours: system/ }).click();
  await page.getByRole("button", { name: /^Colours: light/ }).waitFor();
  assert.notEqual(await ground(page), dark);
  await page.reload();
  await page.getByRole("button", { name: /^Colours: light/ }).click();
  await page.getByRole("button", { name: /^Colours: dark/ }).waitFor();
  assert.equal(await ground(page), dark);
  await close(page);
});

for (const [hash, content] of VIEWS) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${hash} is accessible in ${colorScheme}, wide and narrow`, async () => {
      for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
        const page = await open(browser, server, hash, { colorScheme, viewport });
        await page.locator(content).first().waitFor();
        await checkAccess(page);
        await close(page);
      }
    });
  }

  test(`${hash} fits 360 pixels and a large screen`, async () => {
    for (const viewport of [{ width: 360, height: 740 }, { width: 3840, height: 2160 }]) {
      const page = await open(browser, server, hash, { viewport });
      await page.locator(content).first().waitFor();
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(overflow, 0, `${viewport.width} pixels`);
      await close(page);
    }
  });
}

test("a row of the list has two lines on 360 pixels", async () => {
  await server.session("busy", { title: "Working for long", metadata: { agent: "a-reader-of-queries" } });
  await server.appendMany("busy", Array.from({ length: 120 }, () => assistant("Done", { usage: { input: 1, output: 1, cost_usd: 0.0001 } })));
  await server.send("PUT", "/sessions/busy/status", { status: "working" });
  const page = await open(browser, server, "#/sessions", { viewport: { width: 360, height: 740 } });
  await page.locator(".row", { hasText: "Working for long" }).getByText("120 messages").waitFor();
  const lines = await page.locator(".row-link").evaluateAll((rows) =>
    rows.map((row) => new Set([...row.children].slice(1).filter((part) => part.offsetHeight > 0).map((part) => Math.round(part.getBoundingClientRect().bottom / 8))).size),
  );
  assert.deepEqual(new Set(lines), new Set([1]));
  await close(page);
});

test("the head of the list fits 360 pixels", async () => {
  const page = await open(browser, server, "#/sessions", { viewport: { width: 360, height: 740 } });
  await page.locator(".row").first().waitFor();
  const title = await page.getByRole("heading", { name: "Sessions" }).boundingBox();
  const [first, last] = [await page.getByRole("link", { name: "Deleted" }).boundingBox(), await page.getByRole("button", { name: "New session" }).boundingBox()];
  assert.ok(title.x + title.width < first.x && last.x + last.width <= 352, JSON.stringify([title, first, last]));
  await close(page);
});

test("a view that fails says what to do, and tries again", async () => {
  const page = await open(browser, server, "");
  await page.locator(".row").first().waitFor();
  await page.route("**/v1/sessions?**", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"detail":"the disk is full","hint":"Free some room.","code":"session/storage"}' }));
  await page.reload();
  await see(page, "The disk is full. Free some room.");
  await checkAccess(page);
  await page.unroute("**/v1/sessions?**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".row").first().waitFor();
  await close(page);
});

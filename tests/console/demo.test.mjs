import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { Bough } from "./server.mjs";

let server;
let browser;
let sessions;

before(async () => {
  [server, browser] = await Promise.all([Bough.start((bough) => bough.command("demo")), launch()]);
  ({ sessions } = await server.send("GET", "/sessions"));
});

after(async () => {
  await browser.close();
  await server.stop();
});

const addressOf = (title) => `#/sessions/${sessions.find((session) => session.title === title).session_id}`;

test("every session of the demo is accessible in every view", async () => {
  assert.ok(sessions.length >= 9);
  const page = await open(browser, server, "#/sessions");
  await page.locator(".row").first().waitFor();
  for (const { session_id: id } of sessions) {
    for (const [part, content] of [["", ".message"], ["/tree", ".tree-node"], ["/loops", ".loops-body, .state"]]) {
      await page.evaluate((hash) => (location.hash = hash), `#/sessions/${id}${part}`);
      await page.locator(content).first().waitFor();
      await checkAccess(page);
    }
  }
  await close(page);
});

test("a call leads to the session of its sub-agent, and the sub-agent back", async () => {
  const page = await open(browser, server, addressOf("Make the report page faster"));
  const links = page.getByRole("link", { name: /^Read what the sub-agent/ });
  await links.nth(1).waitFor();
  assert.deepEqual(await links.locator("strong").allInnerTexts(), ["query-reader", "render-reader"]);
  await links.first().click();
  await page.getByRole("heading", { level: 1, name: "Why does the report page send 214 queries?" }).waitFor();
  await page.getByRole("link", { name: "started by Make the report page faster" }).click();
  await page.getByRole("heading", { level: 1, name: "Make the report page faster" }).waitFor();
  await close(page);
});

test("usage shows what was spent on each of many days", async () => {
  const page = await open(browser, server, "#/usage?of=cost");
  await see(page, "Cost per day");
  const days = await page.locator(".chart rect").evaluateAll((bars) => new Set(bars.map((bar) => bar.getAttribute("x"))).size);
  assert.ok(days >= 15, `${days} days`);
  await close(page);
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { Bough } from "./server.mjs";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

const PAGES = ["docs", "docs/errors/session/leaf_conflict"];

test("the reference has every operation, and loads nothing from elsewhere", async () => {
  const page = await open(browser, server, "docs");
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => page.complaints.push(message.text()));
  const answer = await page.reload();
  assert.match(answer.headers()["content-security-policy"], /^default-src 'none'; style-src 'self'/);
  const { paths } = await (await fetch(`${server.origin}/openapi.json`)).json();
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    assert.equal(await page.locator(`#${operation.operationId}`).count(), 1, operation.operationId);
  }
  assert.ok(requests.length > 1, "the style is loaded");
  assert.ok(requests.every((url) => url.startsWith(`${server.origin}/docs`)), requests.join(" "));
  assert.equal(await page.locator("script").count(), 0);
  await close(page);
});

test("the contents lead to an operation", async () => {
  const page = await open(browser, server, "docs");
  await page.locator("nav summary", { hasText: "sessions" }).click();
  await page.locator("nav a[href='#appendEntry']").click();
  await page.locator("#appendEntry").waitFor();
  assert.equal(new URL(page.url()).hash, "#appendEntry");
  await close(page);
});

test("the type of a problem leads to its page", async () => {
  const answer = await fetch(`${server.origin}/v1/sessions/none`);
  assert.equal(answer.status, 404);
  const problem = await answer.json();
  const page = await open(browser, server, problem.type.slice(1));
  await see(page, problem.code);
  await see(page, "What it means");
  await close(page);
});

for (const path of PAGES) {
  for (const colorScheme of ["light", "dark"]) {
    test(`/${path} is accessible in ${colorScheme}, wide and narrow`, async () => {
      for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
        const page = await open(browser, server, path, { colorScheme, viewport });
        await checkAccess(page);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(overflow, 0, `${viewport.width} pixels`);
        await close(page);
      }
    });
  }
}

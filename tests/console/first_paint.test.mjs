import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { Bough, user } from "./server.mjs";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  await server.session("first", { title: "First" });
  await server.append("first", user("Hello"));
});

after(async () => {
  await browser.close();
  await server.stop();
});

const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

/** Keeps the files of the program back until the function that it answers is called. */
async function withoutProgram(page) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(/\/assets\/(app|core|session_views)-\w+\.js$/, async (route) => {
    await released;
    await route.fallback();
  });
  return release;
}

const isPainted = () => performance.getEntriesByName("first-contentful-paint").length === 1;

for (const [hash, requests, content] of [
  ["#/sessions", ["/v1/events", "/v1/sessions"], ".row"],
  ["#/sessions/first", ["/v1/sessions/first/events", "/v1/sessions/first/messages/tail"], ".message"],
]) {
  test(`${hash} is painted, and asks for what it shows, before its program is there`, async () => {
    let release;
    const asked = [];
    const page = await open(browser, server, hash, {}, async (page) => {
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      release = await withoutProgram(page);
    });
    await page.waitForFunction(isPainted);
    await page.getByRole("link", { name: "Usage" }).waitFor();
    await see(page, "Loading");
    await checkAccess(page);
    while (!requests.every((path) => asked.includes(path))) {
      await page.waitForEvent("request");
    }
    assert.equal(await page.locator(content).count(), 0);
    release();
    await page.locator(content).first().waitFor();
    for (const path of requests) {
      assert.equal(asked.filter((other) => other === path).length, 1, path);
    }
    await close(page);
  });
}

test("the first paint has the colours that were chosen", async () => {
  const page = await open(browser, server, "#/sessions", { colorScheme: "light" });
  const light = await ground(page);
  await page.getByRole("button", { name: /^Colours: system/ }).click();
  await page.getByRole("button", { name: /^Colours: light/ }).click();
  await page.getByRole("button", { name: /^Colours: dark/ }).waitFor();
  const release = await withoutProgram(page);
  await page.reload({ waitUntil: "commit" });
  await page.waitForFunction(isPainted);
  assert.notEqual(await ground(page), light);
  release();
  await page.locator(".row").first().waitFor();
  await close(page);
});

test("what changes between the first request and the program is shown", async () => {
  let release;
  const page = await open(browser, server, "#/sessions/first", {}, async (page) => {
    release = await withoutProgram(page);
  });
  await page.waitForFunction(isPainted);
  await server.append("first", user("Said in between"));
  release();
  await see(page, "Said in between");
  await close(page);
});

test("a part of the program that does not come says what to do", async () => {
  const page = await open(browser, server, "#/sessions");
  await page.locator(".row").first().waitFor();
  const part = /\/assets\/session_views-/;
  await page.route(part, (route) => route.abort());
  await page.locator(".row-link").first().click();
  await see(page, "This view could not be loaded");
  await checkAccess(page);
  await page.unroute(part);
  await page.getByRole("button", { name: "Load the page again" }).click();
  await see(page, "Hello");
  await close(page);
});

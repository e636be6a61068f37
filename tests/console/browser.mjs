// Debian's Chromium, pages that must not complain, and axe-core.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** A folder with a build to test instead of the one in the program. */
const DIST = process.env.BOUGH_CONSOLE_DIST;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
}

/** A page on a view of the console, after something was done to the empty page. Errors of scripts and refusals by the page's policy are kept in `page.complaints`. */
export async function open(browser, server, hash, options = {}, prepare = undefined) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Trusted/i.test(message.text())) {
      page.complaints.push(message.text());
    }
  });
  if (DIST !== undefined) {
    await page.route(/^[^/]+\/\/[^/]+\/(#.*)?$|\/assets\//, serveFromFolder);
  }
  await prepare?.(page);
  await page.goto(`${server.origin}/${hash}`, { waitUntil: prepare === undefined ? "load" : "commit" });
  return page;
}

/** Answers with a build that the program does not have yet, under the policy of the program. */
async function serveFromFolder(route) {
  const [, stem, ending] = /assets\/(\w+)-\w+\.(\w+)$/.exec(route.request().url()) ?? [];
  if (stem === undefined) {
    await route.fulfill({ response: await route.fetch(), body: readFileSync(join(DIST, "index.html")) });
  } else {
    const kinds = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
    await route.fulfill({ contentType: kinds[ending], body: readFileSync(join(DIST, `${stem}.${ending}`)) });
  }
}

/** Ends a page that must have had nothing to complain about. */
export async function close(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

/** Looks for what keeps people out. The policy of the page stands for the page's own scripts, not for this one. */
export async function checkAccess(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const expression = `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
    .then((found) => JSON.stringify(found.violations.map((rule) => [rule.id, rule.nodes.map((node) => node.html.slice(0, 200) + " " + node.failureSummary)])))`;
  const answer = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  assert.equal(answer.exceptionDetails, undefined);
  assert.deepEqual(JSON.parse(answer.result.value), []);
}

/** Waits until a page holds a text. */
export async function see(page, text) {
  await page.getByText(text).first().waitFor();
}

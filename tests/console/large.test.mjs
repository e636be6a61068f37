// Many sessions and many entries, scrolled from end to end. BOUGH_CONSOLE_SESSIONS and BOUGH_CONSOLE_ENTRIES say how many.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, launch, open, see } from "./browser.mjs";
import { Bough, user } from "./server.mjs";

const SESSIONS = Number(process.env.BOUGH_CONSOLE_SESSIONS ?? 1_200);
const ENTRIES = Number(process.env.BOUGH_CONSOLE_ENTRIES ?? 5_000);
const BATCH = 500;

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  for (let first = 0; first < SESSIONS; first += 50) {
    const some = Array.from({ length: Math.min(50, SESSIONS - first) }, (_, at) => first + at);
    await Promise.all(some.map((number) => server.session(`n${number}`, { title: `Session ${number}` })));
  }
  await server.session("long", { title: "Long" });
  for (let first = 0; first < ENTRIES; first += BATCH) {
    const count = Math.min(BATCH, ENTRIES - first);
    await server.appendMany("long", Array.from({ length: count }, (_, at) => user(`Entry ${first + at} of many`)));
  }
});

after(async () => {
  await browser.close();
  await server.stop();
});

/** Whether rows are drawn where the list was scrolled to. */
function areRowsDrawn() {
  const box = document.querySelector(".virtual");
  const tops = [...document.querySelectorAll(".row")].map((row) => row.offsetTop);
  const rowHeight = document.querySelector(".row").offsetHeight;
  return Math.min(...tops) <= box.scrollTop && Math.max(...tops) + rowHeight >= Math.min(box.scrollTop + box.clientHeight, box.scrollHeight);
}

test("many sessions are scrolled to the last one with few rows in the page", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Long");
  const box = page.locator(".virtual");
  const seen = new Set();
  while (seen.size < SESSIONS + 1) {
    await page.waitForFunction(areRowsDrawn);
    for (const title of await page.locator(".row-title bdi").allTextContents()) {
      seen.add(title);
    }
    assert.ok((await page.locator(".row").count()) < 80);
    await box.evaluate((element) => (element.scrollTop += element.clientHeight));
  }
  assert.equal(seen.size, SESSIONS + 1);
  await close(page);
});

test("a long session opens at its end, and is read in both directions by pages", async () => {
  const page = await open(browser, server, "#/sessions/long");
  await see(page, `Entry ${ENTRIES - 1} of many`);
  const box = page.locator(".transcript-box");
  for (let back = 60; back <= 600; back += 60) {
    const wanted = page.getByText(`Entry ${ENTRIES - back} of many`);
    while ((await wanted.count()) === 0) {
      await box.evaluate((element) => (element.scrollTop = Math.max(0, element.scrollTop - 3_000)));
    }
  }
  assert.ok((await page.locator(".message").count()) <= 240);
  await page.keyboard.press("g");
  await see(page, "Entry 0 of many");
  await box.evaluate((element) => (element.scrollTop = 0));
  for (let on = 60; on <= 300; on += 60) {
    const wanted = page.getByText(`Entry ${on} of many`);
    while ((await wanted.count()) === 0) {
      await box.evaluate((element) => (element.scrollTop += 3_000));
    }
  }
  await page.keyboard.press("G");
  await see(page, `Entry ${ENTRIES - 1} of many`);
  await close(page);
});

test("a link into the middle of a long session leads there", async () => {
  const middle = Math.floor(ENTRIES / 2);
  const { hits } = await server.send("GET", `/search?query=${encodeURIComponent(`"Entry ${middle} of many"`)}`);
  const page = await open(browser, server, `#/sessions/long?entry=${hits[0].entry_id}`);
  const target = page.locator("[data-target]", { hasText: `Entry ${middle} of many` });
  await target.waitFor();
  const isInSight = await target.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  assert.ok(isInSight);
  await see(page, `Entry ${middle + 5} of many`);
  await see(page, `Entry ${middle - 5} of many`);
  await close(page);
});

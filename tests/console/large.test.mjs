// Many sessions and many entries, scrolled from end to end. BOUGH_CONSOLE_SESSIONS and BOUGH_CONSOLE_ENTRIES say how many.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, launch, open, see } from "./browser.mjs";
import { inMemory, makeLongSession, makeSessions } from "./fill.mjs";
import { Bough } from "./server.mjs";

const SESSIONS = Number(process.env.BOUGH_CONSOLE_SESSIONS ?? 3_000);
const ENTRIES = Number(process.env.BOUGH_CONSOLE_ENTRIES ?? 10_000);
/** A row and a message are small, but a page that held all of them would not move any more. */
const ROWS_IN_PAGE_MAX = 80;
const MESSAGES_IN_PAGE_MAX = 240;

/** One server with many sessions, and one with a long session. */
let many;
let long;
let ids;
let browser;

before(async () => {
  [many, long, browser] = await Promise.all([Bough.start(inMemory), Bough.start(), launch()]);
  await makeSessions(many, SESSIONS);
  ids = await makeLongSession(long, "long", ENTRIES);
});

after(async () => {
  await browser.close();
  await Promise.all([many.stop(), long.stop()]);
});

/** Whether rows are drawn where the list was scrolled to. */
function areRowsDrawn() {
  const box = document.querySelector(".virtual");
  const tops = [...document.querySelectorAll(".row")].map((row) => row.offsetTop);
  const rowHeight = document.querySelector(".row").offsetHeight;
  return Math.min(...tops) <= box.scrollTop && Math.max(...tops) + rowHeight >= Math.min(box.scrollTop + box.clientHeight, box.scrollHeight);
}

/** Scrolls to the end of what is loaded until nothing comes behind it, and counts the rows in the page on the way. */
async function scrollToTheLast([count, most]) {
  const box = document.querySelector(".virtual");
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  let drawn = 0;
  for (;;) {
    box.scrollTop = box.scrollHeight;
    await frame();
    drawn = Math.max(drawn, document.querySelectorAll(".row").length);
    if (drawn > most || document.querySelector(`.row[aria-posinset="${count}"]`) !== null) {
      return drawn;
    }
  }
}

test("many sessions are scrolled to the last one with few rows in the page", async () => {
  const page = await open(browser, many, "#/sessions");
  await page.locator(".row").first().waitFor();
  const drawn = await page.evaluate(scrollToTheLast, [SESSIONS, ROWS_IN_PAGE_MAX]);
  assert.ok(drawn <= ROWS_IN_PAGE_MAX, `${drawn} rows are in the page`);
  await page.waitForFunction(areRowsDrawn);
  const box = page.locator(".virtual");
  const seen = new Set();
  const look = async () => {
    await page.waitForFunction(areRowsDrawn);
    const titles = await page.locator(".row-title bdi").allTextContents();
    titles.forEach((title) => seen.add(title));
    return titles;
  };
  // The oldest ones, then places on the way back, then everything from some place on: no row is missing and none is there twice.
  assert.ok((await look()).some((title) => /^Session \d{1,2}$/.test(title)), "the first sessions that were made come last");
  for (const part of [0.75, 0.5, 0.25]) {
    await box.evaluate((element, at) => (element.scrollTop = element.scrollHeight * at), part);
    const titles = await look();
    assert.equal(new Set(titles).size, titles.length);
  }
  for (let pages = 0; pages < 20; pages += 1) {
    await box.evaluate((element) => (element.scrollTop += element.clientHeight));
    await look();
  }
  assert.ok(seen.size > 300, `${seen.size} sessions were seen`);
  await many.session("newest", { title: "Begun far below" });
  await page.keyboard.press("Home");
  await see(page, "Begun far below");
  await close(page);
});

test("a long session opens at its end, and is read in both directions by pages", async () => {
  const page = await open(browser, long, "#/sessions/long");
  await see(page, `Entry ${ENTRIES - 1} of many`);
  const box = page.locator(".transcript-box");
  const read = async (numbers, by) => {
    for (const number of numbers) {
      const wanted = page.getByText(`Entry ${number} of many`, { exact: true });
      while ((await wanted.count()) === 0) {
        await box.evaluate((element, pixels) => (element.scrollTop = Math.max(0, element.scrollTop + pixels)), by);
      }
      assert.ok((await page.locator(".message").count()) <= MESSAGES_IN_PAGE_MAX);
    }
  };
  const steps = Array.from({ length: 20 }, (_, at) => (at + 1) * 60);
  await read(steps.map((back) => ENTRIES - back), -3_000);
  await page.keyboard.press("g");
  await see(page, "Entry 0 of many");
  await box.evaluate((element) => (element.scrollTop = 0));
  await read(steps, 3_000);
  await page.keyboard.press("G");
  await see(page, `Entry ${ENTRIES - 1} of many`);
  await close(page);
});

test("a link into the middle of a long session leads there, and on in both directions", async () => {
  const middle = Math.floor(ENTRIES / 2);
  const page = await open(browser, long, `#/sessions/long?entry=${ids[middle]}`);
  const target = page.locator("[data-target]", { hasText: `Entry ${middle} of many` });
  await target.waitFor();
  const isInSight = await target.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  assert.ok(isInSight);
  const box = page.locator(".transcript-box");
  for (const [number, by] of [[middle + 150, 3_000], [middle - 150, -3_000]]) {
    const wanted = page.getByText(`Entry ${number} of many`, { exact: true });
    while ((await wanted.count()) === 0) {
      await box.evaluate((element, pixels) => (element.scrollTop += pixels), by);
    }
  }
  await close(page);
});

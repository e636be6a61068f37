// First paint and frame times with many sessions and many entries, beside those of an empty page on this machine.
//
// First paint is what the browser's paint timing reports as first-contentful-paint: from the start of the navigation until something
// of the page, its head, is on the screen. The browser keeps nothing from the page before; the server has answered before. What the page is
// about, its first rows or messages, is in the page at the second time.
//
// BOUGH_CONSOLE_SESSIONS and BOUGH_CONSOLE_ENTRIES say how many; 100,000 of each otherwise.
import { launch, open } from "./browser.mjs";
import { makeLongSession, makeSessions, withoutWaitingForTheDisk } from "./fill.mjs";
import { Bough } from "./server.mjs";

const SESSIONS = Number(process.env.BOUGH_CONSOLE_SESSIONS ?? 100_000);
const ENTRIES = Number(process.env.BOUGH_CONSOLE_ENTRIES ?? 100_000);
const PAINTS = 9;
const FRAMES = 300;
const FRAME_LIMIT_MS = 16.7;
const PAINT_LIMIT_MS = 200;
const PAGE_BYTES_LIMIT = 300_000;

/** Waits until the words of everything that was written are in the search index: a warm server has nothing else to do. */
async function indexed(server) {
  for (;;) {
    const { index } = await server.send("GET", "/search?query=entry&limit=1");
    if (index.is_complete) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Milliseconds from asking for a page until its first content is painted, and until what it is about is there; and its bytes. */
async function opened(browser, server, hash, ready) {
  const page = await open(browser, server, hash);
  const times = await page.evaluate(
    (selector) =>
      new Promise((resolve) => {
        const whenThere = (paint) => {
          const look = () => (document.querySelector(selector) === null ? requestAnimationFrame(look) : resolve({ paint, content: performance.now() }));
          look();
        };
        const seen = (list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => whenThere(entry.startTime));
        new PerformanceObserver(seen).observe({ type: "paint", buffered: true });
      }),
    ready,
  );
  const sizes = await page.evaluate(() =>
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter((entry) => !new URL(entry.name).pathname.startsWith("/v1/"))
      .map((entry) => entry.encodedBodySize),
  );
  await page.context().close();
  return { ...times, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Scrolls a box a little in every frame, there and back; the time from each frame to the next. */
function scrolledFrames([selector, frames]) {
  const box = document.querySelector(selector);
  const times = [];
  let direction = 1;
  return new Promise((resolve) => {
    const step = (now) => {
      times.push(now);
      if (times.length > frames) {
        return resolve(times.slice(1).map((time, at) => time - times[at]));
      }
      const before = box.scrollTop;
      box.scrollTop += direction * 120;
      if (box.scrollTop === before) {
        direction = -direction;
      }
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

async function frames(browser, server, hash, ready, selector, prepare = async () => {}) {
  const page = await open(browser, server, hash);
  await page.locator(ready).first().waitFor();
  await prepare(page);
  const times = await page.evaluate(scrolledFrames, [selector, FRAMES]);
  await page.context().close();
  return times;
}

/** Scrolls on until every session was read from the server. */
async function loadAllSessions(page) {
  const began = performance.now();
  await page.evaluate(async (count) => {
    const box = document.querySelector(".virtual");
    while (document.querySelector(`.row[aria-posinset="${count}"]`) === null) {
      box.scrollTop = box.scrollHeight;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    box.scrollTop /= 2;
  }, SESSIONS + 1);
  console.log(`all sessions were scrolled through in ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

async function emptyFrames(browser) {
  const page = await browser.newPage();
  await page.setContent(`<div id="box" style="height:700px;overflow:auto"><div style="height:1000000px"></div></div>`);
  const times = await page.evaluate(scrolledFrames, ["#box", FRAMES]);
  await page.close();
  return times;
}

function atPart(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

function tell(name, times) {
  const late = times.filter((time) => time > FRAME_LIMIT_MS * 1.5).length;
  const [half, most, worst] = [0.5, 0.95, 1].map((part) => atPart(times, part).toFixed(1));
  console.log(`${name.padEnd(28)} median ${half} ms, 95 of 100 within ${most} ms, worst ${worst} ms, ${late} of ${times.length} frames late`);
}

const [server, browser] = await Promise.all([Bough.start(withoutWaitingForTheDisk), launch()]);
try {
  const began = performance.now();
  await makeSessions(server, SESSIONS);
  await makeLongSession(server, "long", ENTRIES);
  console.log(`${SESSIONS} sessions and ${ENTRIES} entries were written in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  await indexed(server);
  const { bytes } = await opened(browser, server, "#/sessions", ".row");
  console.log(`the page takes ${bytes} bytes as sent (limit ${PAGE_BYTES_LIMIT})`);
  console.log("first paint: first-contentful-paint from the start of the navigation, nothing cached by the browser, a warm server");
  for (const [name, hash, ready] of [["a page of text", "assets/licences.txt", "pre"], ["sessions", "#/sessions", ".row"], ["a long session", "#/sessions/long", ".message"]]) {
    const rounds = [];
    for (let round = 0; round < PAINTS; round += 1) {
      rounds.push(await opened(browser, server, hash, ready));
    }
    const median = (part) => atPart(rounds.map((one) => one[part]), 0.5).toFixed(0);
    console.log(`first paint of ${name}: median ${median("paint")} ms of ${PAINTS} (limit ${PAINT_LIMIT_MS} ms); its first rows are there after ${median("content")} ms`);
  }
  console.log(`frames while scrolling (limit ${FRAME_LIMIT_MS} ms; a frame is late when it misses the next one):`);
  tell("an empty page", await emptyFrames(browser));
  tell("sessions", await frames(browser, server, "#/sessions", ".row", ".virtual"));
  tell("sessions, all of them read", await frames(browser, server, "#/sessions", ".row", ".virtual", loadAllSessions));
  tell("a long session", await frames(browser, server, "#/sessions/long", ".message", ".transcript-box"));
} finally {
  await browser.close();
  await server.stop();
}

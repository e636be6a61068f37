// First paint and frame times with many sessions and many entries, beside those of an empty page on this machine.
//
// BOUGH_CONSOLE_SESSIONS and BOUGH_CONSOLE_ENTRIES say how many; 100,000 of each otherwise.
import { launch, open } from "./browser.mjs";
import { Bough, user } from "./server.mjs";

const SESSIONS = Number(process.env.BOUGH_CONSOLE_SESSIONS ?? 100_000);
const ENTRIES = Number(process.env.BOUGH_CONSOLE_ENTRIES ?? 100_000);
const BATCH = 500;
const WRITERS = 32;
const PAINTS = 5;
const FRAMES = 300;
const FRAME_LIMIT_MS = 16.7;
const PAINT_LIMIT_MS = 200;

async function fill(server) {
  let next = 0;
  const writer = async () => {
    for (let number = next++; number < SESSIONS; number = next++) {
      const body = { create: true, meta: { title: `Session ${number}` }, entries: [{ message: user(`Question ${number}`) }] };
      await server.send("POST", `/sessions/n${number}/entries/batch`, body);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  await server.session("long", { title: "Long" });
  for (let first = 0; first < ENTRIES; first += BATCH) {
    const count = Math.min(BATCH, ENTRIES - first);
    await server.appendMany("long", Array.from({ length: count }, (_, at) => user(`Entry ${first + at} of many`)));
  }
}

/** Milliseconds from asking for a page until its first content is painted. */
async function firstPaint(browser, server, hash) {
  const page = await open(browser, server, hash);
  const ms = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const seen = (list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => resolve(entry.startTime));
        new PerformanceObserver(seen).observe({ type: "paint", buffered: true });
      }),
  );
  await page.context().close();
  return ms;
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

async function frames(browser, server, hash, ready, selector) {
  const page = await open(browser, server, hash);
  await page.locator(ready).first().waitFor();
  const times = await page.evaluate(scrolledFrames, [selector, FRAMES]);
  await page.context().close();
  return times;
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

const [server, browser] = await Promise.all([Bough.start(), launch()]);
try {
  const began = performance.now();
  await fill(server);
  console.log(`${SESSIONS} sessions and ${ENTRIES} entries were written in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  await firstPaint(browser, server, "#/sessions");
  for (const [name, hash] of [["sessions", "#/sessions"], ["a long session", "#/sessions/long"]]) {
    const paints = [];
    for (let round = 0; round < PAINTS; round += 1) {
      paints.push(await firstPaint(browser, server, hash));
    }
    console.log(`first paint of ${name}: median ${atPart(paints, 0.5).toFixed(0)} ms of ${PAINTS} (limit ${PAINT_LIMIT_MS} ms)`);
  }
  console.log(`frames while scrolling (limit ${FRAME_LIMIT_MS} ms; a frame is late when it misses the next one):`);
  tell("an empty page", await emptyFrames(browser));
  tell("sessions", await frames(browser, server, "#/sessions", ".row", ".virtual"));
  tell("a long session", await frames(browser, server, "#/sessions/long", ".message", ".transcript-box"));
} finally {
  await browser.close();
  await server.stop();
}

// A recording with very many loops: all of it is reached, and its time is drawn larger. BOUGH_CONSOLE_LOOPS says how many.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open } from "./browser.mjs";
import { makeLongRecording, withoutWaitingForTheDisk } from "./fill.mjs";
import { Bough } from "./server.mjs";

const LOOPS = Number(process.env.BOUGH_CONSOLE_LOOPS ?? 3_000);
/** A page that held all rows would not move any more. */
const ROWS_IN_PAGE_MAX = 200;
const HASH = "#/sessions/many/loops";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(withoutWaitingForTheDisk), launch()]);
  await makeLongRecording(server, "many", LOOPS);
});

after(async () => {
  await browser.close();
  await server.stop();
});

const row = (page, number) => page.locator(`.track-row[data-loop="${number}"]`);

const callOf = (page, number) => row(page, number).locator(`.bar-call[title^="tool-${number},"]`);

async function opened(options) {
  const page = await open(browser, server, HASH, options);
  page.entriesRead = 0;
  page.on("request", (request) => (page.entriesRead += new URL(request.url()).pathname.endsWith("/entries") ? 1 : 0));
  await page.getByText(`${LOOPS.toLocaleString("en")} loops`, { exact: true }).waitFor();
  return page;
}

/** Whether a row is in the page, and below the head of the timeline. */
function isInSight(number) {
  const place = document.querySelector(`.track-row[data-loop="${number}"]`)?.getBoundingClientRect();
  return place !== undefined && place.top >= document.querySelector(".tracks-head").getBoundingClientRect().bottom - 1 && place.bottom <= innerHeight;
}

test("the newest loop of a long recording is a key away, with its calls, and few rows are in the page", async () => {
  for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
    const page = await opened({ viewport });
    await callOf(page, 1).waitFor();
    await page.keyboard.press("G");
    await callOf(page, LOOPS).waitFor();
    await page.waitForFunction(isInSight, LOOPS);
    await page.getByRole("complementary", { name: "Selected loop" }).getByRole("link", { name: `tool-${LOOPS}` }).waitFor();
    assert.ok((await page.locator(".track-row").count()) <= ROWS_IN_PAGE_MAX);
    assert.ok(page.entriesRead <= 6, `${page.entriesRead} pages of entries were read`);
    assert.equal(await page.locator(".loops-chain button").count(), 20, "a long way is not named loop by loop");
    await page.keyboard.press("k");
    await page.waitForFunction(isInSight, LOOPS - 1);
    await page.getByRole("button", { name: "First loop" }).click();
    await page.waitForFunction(isInSight, 1);
    await checkAccess(page);
    await close(page);
  }
});

test("every loop of a long recording is scrolled to, with its calls", async () => {
  const page = await opened();
  const box = page.locator(".loops-main");
  for (const part of [0.3, 0.5, 0.9]) {
    await box.evaluate((element, at) => (element.scrollTop = element.scrollHeight * at), part);
    await page.waitForFunction(() => {
      const head = document.querySelector(".tracks-head").getBoundingClientRect().bottom;
      const rows = [...document.querySelectorAll(".track-row[data-loop]")].map((found) => [found, found.getBoundingClientRect()]);
      const seen = rows.filter(([, { top, bottom }]) => top >= head && bottom <= innerHeight);
      return seen.length > 5 && seen.every(([found]) => found.querySelector(".bar-call") !== null);
    });
    assert.ok((await page.locator(".track-row").count()) <= ROWS_IN_PAGE_MAX);
  }
  await close(page);
});

/** Pixels for a second: between the first two ticks, and of the turns, which take 20 seconds each. */
function pixelsPerSecond() {
  const [first, second] = [...document.querySelectorAll(".tick")].map((tick) => ({ left: tick.getBoundingClientRect().left, time: /(\d+):(\d+):(\d+)/.exec(tick.textContent).slice(1).reduce((sum, part) => sum * 60 + Number(part), 0) }));
  const { left, right } = document.querySelector(".track-axis .track").getBoundingClientRect();
  const turns = [...document.querySelectorAll(".bar-turn")].map((bar) => bar.getBoundingClientRect()).filter((bar) => bar.left > left && bar.right < right);
  return { axis: (second.left - first.left) / (second.time - first.time), turns: turns.map((bar) => bar.width / 20) };
}

async function checkAxis(page) {
  const { axis, turns } = await page.evaluate(pixelsPerSecond);
  assert.ok(turns.length > 0 && turns.every((turn) => Math.abs(turn / axis - 1) < 0.05), `${axis}: ${turns.join(" ")}`);
  return axis;
}

test("the time is drawn larger by keys, buttons and the wheel, and the axis tells the truth", async () => {
  const page = await opened({ locale: "en-GB" });
  for (let presses = 0; presses < 16; presses += 1) {
    await page.keyboard.press("+");
  }
  const byKeys = await checkAxis(page);
  await page.getByRole("button", { name: "Time larger" }).click();
  const byButton = await checkAxis(page);
  assert.ok(Math.abs(byButton / byKeys - 1.5) < 0.05, `${byKeys} and ${byButton}`);
  const turn = row(page, 1).locator(".bar-turn");
  const { x, y } = await turn.boundingBox();
  await page.mouse.move(x + 1, y + 5);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 100);
  await page.keyboard.up("Control");
  await page.waitForFunction((before) => document.querySelector(".bar-turn").getBoundingClientRect().width < before, (await turn.boundingBox()).width + 0.5);
  const byWheel = await checkAxis(page);
  assert.ok(byWheel < byButton);
  const track = await page.locator(".track-axis .track").boundingBox();
  await page.mouse.move(track.x + track.width - 20, y + 10);
  await page.mouse.down();
  await page.mouse.move(track.x + 20, y + 10, { steps: 5 });
  await page.mouse.up();
  await turn.waitFor({ state: "detached" });
  assert.equal(await row(page, 1).getAttribute("data-selected"), "", "a drag chooses nothing");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("0");
  await turn.waitFor();
  assert.ok(await page.getByRole("button", { name: "Whole time" }).isDisabled());
  await close(page);
});

test("two fingers make the time larger and smaller", async () => {
  const page = await opened({ hasTouch: true, viewport: { width: 360, height: 740 } });
  const bar = row(page, 2).locator(".bar-turn");
  const axis = await page.locator(".track-axis .track").boundingBox();
  const y = (await row(page, 2).boundingBox()).y + 40;
  const spread = async (from, to) => {
    const touch = await page.context().newCDPSession(page);
    const points = (apart) => [-apart, apart].map((dx, id) => ({ x: axis.x + axis.width / 2 + dx, y, id }));
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: points(from) });
    for (const part of [0.25, 0.5, 0.75, 1]) {
      await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: points(from + (to - from) * part) });
    }
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  };
  await spread(20, 80);
  await page.locator(".zoom-seen", { hasText: "–" }).waitFor();
  assert.equal(await bar.count(), 0, "the second loop is at the edge");
  await spread(80, 10);
  await page.getByText(`${LOOPS.toLocaleString("en")} loops`, { exact: true }).waitFor();
  assert.equal(await bar.count(), 1);
  await close(page);
});

test("loops that could not be read are said to be missing, and are read when one asks", async () => {
  const isPageBehind = (address) => address.pathname.endsWith("/loops") && address.searchParams.has("cursor");
  const page = await open(browser, server, "", {}, (fresh) => fresh.route(isPageBehind, (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: "{}" })));
  await page.goto(`${server.origin}/${HASH}`);
  const again = page.getByRole("button", { name: "Not everything could be read. Try again" });
  await again.waitFor();
  await page.getByText("500 loops shown").waitFor();
  await page.unroute(isPageBehind);
  await again.click();
  await page.getByText(`${LOOPS.toLocaleString("en")} loops`, { exact: true }).waitFor();
  await again.waitFor({ state: "detached" });
  await close(page);
});

test("a loop that begins while one looks at a long recording comes behind the others", async () => {
  const page = await opened();
  const of = { loop_id: "many.news", timestamp: new Date(Date.UTC(2026, 10, 15)).toISOString() };
  await server.send("POST", "/record/many", { events: [{ type: "AgentStart", agent_id: "many", session_id: "many", parent_loop_id: `many.${LOOPS}`, continuation_kind: "Default", metadata: null, ...of }] });
  await page.getByText(`${(LOOPS + 1).toLocaleString("en")} loops`, { exact: true }).waitFor();
  await page.keyboard.press("G");
  await row(page, LOOPS + 1).getByText("running").waitFor();
  const usage = { input: 1, output: 2, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 3 };
  await server.send("POST", "/record/many", { events: [{ type: "AgentEnd", messages: [], usage, rejection: null, ...of }] });
  await row(page, LOOPS + 1).getByText("running").waitFor({ state: "detached" });
  await close(page);
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { assistant, Bough, result, user } from "./server.mjs";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  await server.session("ways", { title: "Two ways" });
  await server.append("ways", user("Which way?"), { entry_id: "root" });
  await server.append("ways", assistant("The left one"), { entry_id: "left" });
  await server.append("ways", user("And further left"), { entry_id: "left2" });
  await server.append("ways", assistant("The right one"), { parent_id: "root", entry_id: "right" });
});

after(async () => {
  await browser.close();
  await server.stop();
});

const node = (page, entry) => page.locator(`.tree-node[data-entry="${entry}"]`);

const leafOf = async (session) => (await server.send("GET", `/sessions/${session}`)).active_leaf;

const choose = (page, entry) => node(page, entry).locator(".tree-target").click();

test("the tree shows every branch, with the active path in the first lane", async () => {
  const page = await open(browser, server, "#/sessions/ways");
  await page.getByRole("link", { name: "Tree" }).click();
  await node(page, "left2").waitFor();
  assert.equal(await page.locator(".tree-node").count(), 4);
  const active = await page.locator(".tree-picture .tree-active").evaluateAll((nodes) => nodes.map((found) => found.dataset.entry));
  assert.deepEqual(active, ["root", "right"]);
  await checkAccess(page);
  await close(page);
});

test("two branches stand side by side, and the active one is switched", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree");
  await choose(page, "left2");
  const comparison = page.getByLabel("Comparison with the active branch");
  await comparison.getByText("The right one").waitFor();
  await comparison.getByText("And further left").waitFor();
  assert.equal(await comparison.getByText("Which way?").count(), 0, "what they share is left out");
  await checkAccess(page);
  await page.getByRole("button", { name: "Make active" }).click();
  await page.locator('.tree-active[data-entry="left2"]').waitFor();
  await server.send("PUT", "/sessions/ways/leaf", { entry_id: "right" });
  await page.locator('.tree-active[data-entry="right"]').waitFor();
  await close(page);
});

test("any two branches are read side by side, and the address says which", async () => {
  await server.session("three", { title: "Three ways" });
  await server.append("three", user("Which way?"), { entry_id: "start" });
  for (const way of ["north", "south", "west"]) {
    await server.append("three", assistant(`Go **${way}**`), { parent_id: "start", entry_id: way });
  }
  const page = await open(browser, server, "#/sessions/three/tree");
  await choose(page, "north");
  await page.getByRole("button", { name: "Compare others with this" }).click();
  await choose(page, "south");
  const comparison = page.getByLabel("Comparison with the marked branch");
  await comparison.getByRole("link", { name: "Read side by side" }).click();
  const [left, right] = ["Left branch", "Right branch"].map((name) => page.getByRole("region", { name }));
  await left.locator("strong", { hasText: "north" }).waitFor();
  await right.locator("strong", { hasText: "south" }).waitFor();
  assert.equal(await page.locator(".compare .message").count(), 2, "what they share is left out");
  assert.match(page.url(), /compare\?left=north&right=south/);
  assert.equal(await page.locator(".compare .tag").count(), 0, "neither is the active one");
  await server.send("PUT", "/sessions/three/leaf", { entry_id: "south" });
  await page.reload();
  await right.locator(".tag", { hasText: "active" }).waitFor();
  assert.equal(await left.locator(".tag").count(), 0);
  await checkAccess(page);
  await page.reload();
  await right.getByRole("link", { name: "Read" }).click();
  await page.locator("[data-target]", { hasText: "Go south" }).waitFor();
  await close(page);
});

test("the tree grows while one looks, and an entry is labelled and forked", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree");
  await node(page, "right").waitFor();
  await server.append("ways", user("Something new"), { entry_id: "new" });
  await node(page, "new").waitFor();
  await choose(page, "left");
  await page.getByRole("button", { name: "Label" }).click();
  await page.getByLabel("Label; empty takes it away").fill("turning point");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".tree-label", { hasText: "turning point" }).waitFor();
  await page.getByRole("button", { name: "Fork" }).click();
  await see(page, "forked from another session");
  await page.locator(".message", { hasText: "The left one" }).waitFor();
  await close(page);
});

test("a drag moves the picture and chooses nothing", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree");
  await choose(page, "root");
  const view = () => page.locator(".tree-picture").getAttribute("viewBox");
  const before = await view();
  const { x, y } = await node(page, "left2").locator(".tree-target").boundingBox();
  await page.mouse.move(x + 40, y + 10);
  await page.mouse.down();
  await page.mouse.move(x + 90, y + 70, { steps: 4 });
  await page.mouse.up();
  await page.locator('[data-selected][data-entry="root"]').waitFor();
  assert.notEqual(await view(), before);
  await choose(page, "left2");
  await page.locator('[data-selected][data-entry="left2"]').waitFor();
  await close(page);
});

test("two fingers make the picture larger around what is between them", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree", { hasTouch: true, viewport: { width: 360, height: 740 } });
  const dot = node(page, "right").locator(".tree-dot");
  await dot.waitFor();
  const middle = async () => {
    const { x, y, width, height } = await dot.boundingBox();
    return { x: x + width / 2, y: y + height / 2, width };
  };
  const before = await middle();
  const selected = page.locator("[data-selected]");
  const chosen = await selected.getAttribute("data-entry");
  const touch = await page.context().newCDPSession(page);
  const fingers = (type, ...apart) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: apart.map((dy, id) => ({ x: before.x, y: before.y + dy, id })) });
  await fingers("touchStart", -10, 10);
  for (const apart of [12, 15, 18, 20]) {
    await fingers("touchMove", -apart, apart);
  }
  await fingers("touchEnd");
  const larger = await middle();
  assert.ok(Math.abs(larger.width / before.width - 2) < 0.1, `${before.width} and ${larger.width}`);
  assert.ok(Math.hypot(larger.x - before.x, larger.y - before.y) < 3, "what is between the fingers stays there");
  assert.equal(await selected.getAttribute("data-entry"), chosen, "a pinch chooses nothing");
  await close(page);
});

test("texts and labels stay in their lane, and lanes take the room that there is", async () => {
  await server.session("wide", { title: "Wide" });
  await server.append("wide", user("W".repeat(120)), { entry_id: "start" });
  await server.append("wide", assistant("M".repeat(120)), { entry_id: "one" });
  await server.append("wide", assistant("M".repeat(120)), { parent_id: "start", entry_id: "two" });
  await server.send("PUT", "/sessions/wide/entries/two/label", { label: "A label that is much longer than the lane of its branch" });
  const widths = [];
  for (const width of [1280, 2560]) {
    const page = await open(browser, server, "#/sessions/wide/tree", { viewport: { width, height: 800 } });
    await page.locator(".tree-label").waitFor();
    const lane = (await node(page, "start").locator(".tree-target").boundingBox()).width;
    const texts = await page.locator(".tree-node > svg").evaluateAll((found) => found.map((box) => [box.width.baseVal.value * box.getScreenCTM().a, getComputedStyle(box).overflow]));
    assert.ok(texts.length > 0);
    assert.ok(texts.every(([room, overflow]) => room < lane && overflow === "hidden"), JSON.stringify(texts));
    widths.push(lane);
    await close(page);
  }
  assert.ok(widths[1] > 1.3 * widths[0], widths.join(" "));
});

test("the wheel moves the picture, and makes it larger around the pointer", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree");
  await node(page, "left").waitFor();
  const view = async () => (await page.locator(".tree-picture").getAttribute("viewBox")).split(" ").map(Number);
  const { x, y } = await node(page, "left").locator("circle").boundingBox();
  await page.mouse.move(x, y);
  const [, top, width] = await view();
  await page.mouse.wheel(0, 40);
  await page.waitForFunction((top) => Number(document.querySelector(".tree-picture").getAttribute("viewBox").split(" ")[1]) > top, top);
  await page.mouse.wheel(0, -40);
  await page.waitForFunction((top) => Number(document.querySelector(".tree-picture").getAttribute("viewBox").split(" ")[1]) === top, top);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -40);
  await page.keyboard.up("Control");
  await page.waitForFunction((width) => Number(document.querySelector(".tree-picture").getAttribute("viewBox").split(" ")[2]) < width, width);
  const now = await node(page, "left").locator("circle").boundingBox();
  assert.ok(Math.abs(now.x - x) < 1 && Math.abs(now.y - y) < 1, "what is under the pointer stays there");
  await close(page);
});

test("the newest entry stands above the buttons, and what failed is marked", async () => {
  await server.session("deep", { title: "Deep" });
  await server.appendMany("deep", Array.from({ length: 60 }, (_, at) => user(`Step ${at}`)));
  await server.append("deep", result("1", "bash", "no such file", { is_error: true }), { entry_id: "end" });
  const page = await open(browser, server, "#/sessions/deep/tree");
  await node(page, "end").locator(".tree-dot-failed").waitFor();
  const last = await node(page, "end").locator(".tree-target").boundingBox();
  const tools = await page.locator(".tree-tools").boundingBox();
  assert.ok(last.y + last.height <= tools.y, `${last.y + last.height} ${tools.y}`);
  await checkAccess(page);
  await close(page);
});

test("the keyboard moves through the tree and opens an entry", async () => {
  const page = await open(browser, server, "#/sessions/ways/tree");
  await choose(page, "root");
  await page.locator(".tree-box").focus();
  await page.keyboard.press("ArrowDown");
  await page.locator('[data-selected][data-entry="right"]').waitFor();
  await page.keyboard.press("ArrowRight");
  await page.locator('[data-selected][data-entry="left"]').waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Move through the tree").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".tree-box").focus();
  await page.keyboard.press("Enter");
  await page.locator("[data-target]", { hasText: "The left one" }).waitFor();
  await close(page);
});

test("ten thousand entries on many branches can be moved through", async () => {
  await server.session("large", { title: "Large" });
  for (let first = 0; first < 10_000; first += 500) {
    const texts = Array.from({ length: 500 }, (_, at) => user(`Entry ${first + at}`));
    const { entries } = await server.appendMany("large", texts);
    const ids = entries.map((entry) => entry.entry_id);
    await server.append("large", assistant(`Aside ${first}`), { parent_id: ids[100] });
    await server.send("PUT", "/sessions/large/leaf", { entry_id: ids[499] });
  }
  const page = await open(browser, server, "#/sessions/large/tree");
  await page.locator("text", { hasText: "Entry 9999" }).waitFor();
  assert.ok((await page.locator(".tree-node").count()) < 200, "only what is in sight is drawn");
  await page.getByRole("button", { name: "Fit" }).click();
  const box = await page.locator(".tree-box").boundingBox();
  const isInside = async (place) => {
    const { y, height } = await place.boundingBox();
    return y >= box.y && y + height <= box.y + box.height;
  };
  const [first, last] = [page.locator(".tree-picture .tree-node").first(), page.locator(`.tree-node[data-entry="${await leafOf("large")}"]`)];
  assert.ok((await isInside(first)) && (await isInside(last)), "the whole tree is in sight");
  assert.equal(await page.locator(".tree-picture circle").count(), await page.locator(".tree-node").count());
  const map = await page.locator(".tree-map path, .tree-map rect").evaluateAll((shapes) => shapes.map((shape) => Math.max(shape.getBoundingClientRect().width, shape.getBoundingClientRect().height)));
  assert.ok(map.length > 20 && map.every((pixels) => pixels >= 3), map.join(" "));
  const folded = page.locator(".tree-node", { has: page.locator(".tree-dot-folded") });
  const rows = await folded.count();
  assert.ok(rows >= 20, `${rows} runs`);
  await folded.first().locator(".tree-target").click();
  await page.getByRole("button", { name: "Fold" }).waitFor();
  await page.getByRole("button", { name: "Fit" }).click();
  // So many rows are too small to be drawn one by one: the branches are lines.
  await page.locator(".tree-node").first().waitFor({ state: "detached" });
  assert.ok((await page.locator(".tree-picture .tree-edge").count()) > 20);
  await page.getByRole("button", { name: "Fold" }).click();
  await page.getByRole("button", { name: "Fit" }).click();
  await folded.nth(rows - 1).waitFor();
  await page.locator(".tree-map").click({ position: { x: 30, y: 2 } });
  await page.getByRole("button", { name: "Larger" }).click({ clickCount: 9 });
  await page.locator("text").first().waitFor();
  await close(page);
});

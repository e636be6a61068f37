import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { Bough } from "./server.mjs";

const TITLE = "Make the report page faster";
let server;
let browser;
let hash;

before(async () => {
  [server, browser] = await Promise.all([Bough.start((bough) => bough.command("demo")), launch()]);
  const { sessions } = await server.send("GET", "/sessions");
  const { session_id: id } = sessions.find((session) => session.title === TITLE);
  hash = `#/sessions/${id}/loops`;
});

after(async () => {
  await browser.close();
  await server.stop();
});

test("the timeline shows every loop, the chosen one of a group, a rerun and a branch", async () => {
  const page = await open(browser, server, hash);
  await page.locator('[data-loop="8"]').waitFor();
  const group = page.getByRole("region", { name: "Parallel group" });
  assert.equal(await group.locator(".track-row").count(), 2);
  await group.locator(".track-row", { hasText: "chosen" }).getByText("demo-large").waitFor();
  for (const mark of ["rerun", "branch", "refused"]) {
    assert.equal(await page.locator(".track-title", { hasText: mark }).count(), 1, mark);
  }
  assert.equal(await page.locator(".bar-failed").count(), 1);
  await checkAccess(page);
  await close(page);
});

test("a time stands in the same place in every row, on narrow pages too", async () => {
  for (const width of [360, 768, 1280]) {
    const page = await open(browser, server, hash, { viewport: { width, height: 740 } });
    await page.locator('[data-loop="8"]').waitFor();
    const tracks = await page.locator(".track").evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect()).map(({ left, right }) => [Math.round(left), Math.round(right)].join(" ")));
    assert.equal(new Set(tracks).size, 1, `${width}: ${tracks.join(", ")}`);
    await close(page);
  }
});

test("a loop says what it did, what a compaction hides, and how it came to it", async () => {
  const page = await open(browser, server, hash);
  const side = page.getByRole("complementary", { name: "Selected loop" });
  await side.getByText("14.0 s").waitFor();
  await side.getByText("this stands for 2 messages").waitFor();
  await side.getByText("214 queries (the owner of each row").waitFor();
  await side.getByText("What it hides").click();
  assert.equal(await side.locator(".hidden-entries li").count(), 2);
  assert.equal(await side.evaluate((element) => element.scrollWidth - element.clientWidth), 0);
  await checkAccess(page);
  await page.getByRole("button", { name: /Loop 4/ }).click();
  await side.getByText("Choosing took 3,140 tokens").waitFor();
  assert.equal((await side.locator(".loops-chain").innerText()).replace(/\s+/g, " "), "1 → 2 → 4");
  await side.getByRole("link", { name: "Read in the transcript" }).click();
  await see(page, "One query of 50 ms");
  await close(page);
});

test("the keys of the loops are listed in one column, on a narrow page too", async () => {
  const page = await open(browser, server, hash, { viewport: { width: 360, height: 740 } });
  await page.locator('[data-loop="8"]').waitFor();
  await page.keyboard.press("?");
  await page.getByText("Newest loop", { exact: true }).waitFor();
  const lefts = await page.locator(".shortcut dd").evaluateAll((words) => words.map((word) => Math.round(word.getBoundingClientRect().left)));
  assert.equal(new Set(lefts).size, 1, lefts.join(" "));
  await close(page);
});

test("sub-agents are linked both ways", async () => {
  const page = await open(browser, server, hash);
  const family = page.getByRole("region", { name: "Sub-agents" });
  await family.getByRole("link", { name: /Why does rendering/ }).click();
  await page.getByRole("heading", { level: 1, name: /Why does rendering/ }).waitFor();
  await page.locator(".family-member[aria-current]", { hasText: "render-reader" }).waitFor();
  await family.getByRole("link", { name: new RegExp(TITLE) }).click();
  await page.getByRole("heading", { level: 1, name: TITLE }).waitFor();
  await close(page);
});

test("a recording is played from its beginning to its end, at a chosen speed", async () => {
  const page = await open(browser, server, hash);
  const slider = page.getByRole("slider", { name: "Time" });
  await slider.fill("0");
  const said = page.getByRole("region", { name: "Messages up to this time" });
  await said.getByText("The report page takes four seconds").waitFor();
  assert.ok((await page.locator(".bar[data-later]").count()) > 10);
  await page.getByLabel("Speed").selectOption("60");
  await page.getByRole("button", { name: "Replay" }).click();
  await said.getByText("two agents can look at them").waitFor();
  await said.waitFor({ state: "detached" });
  assert.equal(await page.locator(".bar[data-later]").count(), 0);
  await page.getByRole("button", { name: "Replay" }).waitFor();
  await close(page);
});

test("the tree of a recording says what was said", async () => {
  const page = await open(browser, server, hash.replace(/loops$/, "tree"));
  await page.getByRole("button", { name: "Fit" }).click();
  await page.locator(".tree-picture text", { hasText: "I will measure first" }).waitFor();
  await close(page);
});

test("a recording is followed while it goes on", async () => {
  const record = (events) =>
    server.send("POST", "/record/following", { events: events.map((event) => ({ loop_id: "following.1", timestamp: "2026-11-16T12:00:00Z", ...event })) });
  await record([{ type: "AgentStart", agent_id: "watched", session_id: "following", parent_loop_id: null, metadata: null }]);
  const page = await open(browser, server, "#/sessions/following/loops");
  await page.locator(".track-title", { hasText: "running" }).waitFor();
  const usage = { input: 1, output: 2, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 3 };
  await record([{ type: "AgentEnd", messages: [], usage, rejection: null }]);
  await page.locator(".track-title", { hasText: "running" }).waitFor({ state: "detached" });
  await page.getByText("completed").waitFor();
  await close(page);
});

test("a session without loops says where they come from, on a narrow screen too", async () => {
  await server.session("plain", { title: "Plain" });
  const page = await open(browser, server, "#/sessions/plain/loops", { viewport: { width: 360, height: 780 }, colorScheme: "dark" });
  await see(page, "No loops were recorded");
  await checkAccess(page);
  await page.goto(`${server.origin}/${hash}`);
  await page.locator('[data-loop="8"]').waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the screen");
  await checkAccess(page);
  await close(page);
});

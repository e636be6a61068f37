import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { assistant, Bough, call, user } from "./server.mjs";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  await server.session("week", { title: "Parse ISO weeks", metadata: { agent: "builder" } });
  await server.append("week", user("The parser refuses weeks"));
  await server.append("week", assistant([{ type: "text", text: "Mended the calendar" }, call("1", "bash", { command: "make" })], { usage: { input: 1200, output: 300, cost_usd: 0.25 } }));
  await server.session("notes", { title: "Write release notes", metadata: { agent: "writer", team: "docs" } });
  await server.append("notes", user("Please write the notes"));
  await server.send("PUT", "/sessions/notes/status", { status: "error", reason: "The tests failed" });
});

after(async () => {
  await browser.close();
  await server.stop();
});

const titles = (page) => page.locator(".row-title bdi").allTextContents();

test("the list shows what a session is and what it cost", async () => {
  const page = await open(browser, server, "#/sessions");
  const row = page.locator(".row", { hasText: "Parse ISO weeks" });
  for (const fact of ["Idle", "builder", "sonnet-large", "1.5K", "$0.25"]) {
    await row.getByText(fact).waitFor();
  }
  assert.deepEqual(await titles(page), ["Write release notes", "Parse ISO weeks"]);
  await checkAccess(page);
  await close(page);
});

test("the list changes as sessions do, without a reload", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Parse ISO weeks");
  await server.session("live", { title: "Begun while you look" });
  await see(page, "Begun while you look");
  await server.send("PATCH", "/sessions/live", { title: "Renamed elsewhere" });
  await see(page, "Renamed elsewhere");
  await server.send("DELETE", "/sessions/live");
  await page.getByText("Renamed elsewhere").waitFor({ state: "detached" });
  await close(page);
});

test("a session whose id is the beginning of others keeps its row when it changes", async (t) => {
  const alike = await Bough.start();
  t.after(() => alike.stop());
  await alike.session("run", { title: "The first run" });
  for (let number = 0; number < 8; number += 1) {
    await alike.session(`run-${number}`, { title: `Run ${number}` });
  }
  const page = await open(browser, alike, "#/sessions");
  await see(page, "The first run");
  // Its row is read on its own while the others are newer.
  await page.route(/id_prefix=run&/, async (route) => {
    await Promise.all(Array.from({ length: 8 }, (_, number) => alike.send("PATCH", `/sessions/run-${number}`, { title: `Later ${number}` })));
    await route.continue();
  });
  await alike.send("PATCH", "/sessions/run", { title: "The first run, renamed" });
  await see(page, "The first run, renamed");
  await close(page);
});

test("a list that changes in many places at once keeps the rows that were read", async (t) => {
  const busy = await Bough.start();
  t.after(() => busy.stop());
  const all = Array.from({ length: 150 }, (_, at) => `s${at}`);
  await Promise.all(all.map((id) => busy.session(id, { title: `First ${id}` })));
  const page = await open(browser, busy, "#/sessions");
  const last = page.locator('.row[aria-posinset="150"]');
  const scrolled = async () => {
    await page.locator(".virtual").evaluate((box) => (box.scrollTop = box.scrollHeight));
    return last.count();
  };
  while ((await scrolled()) === 0);
  // Pages behind the first are not given again.
  await page.route(/\/v1\/sessions\?.*cursor=/, (route) => route.abort());
  await Promise.all(all.slice(0, 60).map((id) => busy.send("PATCH", `/sessions/${id}`, { title: `Second ${id}` })));
  await page.locator(".virtual").evaluate((box) => (box.scrollTop = 0));
  await page.locator('.row[aria-posinset="1"]', { hasText: "Second " }).waitFor();
  while ((await scrolled()) === 0);
  const rows = await page.locator(".row-title bdi").allTextContents();
  assert.ok(rows.every((title) => title.startsWith("First ")), rows.join(", "));
  await close(page);
});

test("search finds titles and content as one types, and the filters are in the address", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Parse ISO weeks");
  await page.keyboard.press("/");
  await page.keyboard.type("calend");
  await page.locator("mark", { hasText: "calend" }).waitFor();
  await page.waitForFunction(() => location.hash.includes("text=calend"));
  assert.deepEqual(await titles(page), ["Parse ISO weeks"]);
  for (const fact of ["Idle", "builder", "sonnet-large", "1.5K", "$0.25"]) {
    await page.locator(".row").getByText(fact).waitFor();
  }
  await checkAccess(page);
  await page.locator(".row-link").first().click();
  await page.locator("[data-target]", { hasText: "Mended the calendar" }).waitFor();
  await page.goBack();
  await page.locator("mark", { hasText: "calend" }).waitFor();
  await close(page);
});

test("what is typed into one field stays when another field or the list changes at the same time", async () => {
  const page = await open(browser, server, "#/sessions?agent=builder");
  await see(page, "Parse ISO weeks");
  await page.clock.install();
  // Each is typed before the view was drawn with what was typed before.
  const type = (label, text) =>
    page.getByLabel(label, { exact: true }).evaluate((field, text) => {
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }, text);
  await type("Tool", "bash");
  await type("Metadata", "owner=nobody");
  await page.clock.runFor(150);
  await type("Tool", "bash5");
  await page.clock.runFor(100);
  assert.equal(await page.getByLabel("Tool", { exact: true }).inputValue(), "bash5");
  assert.match(await page.evaluate(() => location.hash), /agent=builder.*tool=bash&.*metadata=owner%3Dnobody/);
  await page.clock.runFor(150);
  assert.match(await page.evaluate(() => location.hash), /tool=bash5&/);
  await page.context().close();
});

test("what was found in a title is marked there, beside how the session begins", async () => {
  const page = await open(browser, server, "#/sessions?text=release");
  const row = page.locator(".row", { hasText: "Write release notes" });
  await row.locator(".row-title mark", { hasText: "release" }).waitFor();
  assert.equal(await row.locator(".row-found").textContent(), "Please write the notes");
  await close(page);
});

test("filters without words show the sessions as the list does", async () => {
  for (const query of ["agent=builder", "tool=bash", "since=24h", "agent=builder&tool=bash&since=7d"]) {
    const page = await open(browser, server, `#/sessions?${query}`);
    const row = page.locator(".row", { hasText: "Parse ISO weeks" });
    for (const fact of ["Idle", "builder", "sonnet-large", "1.5K", "$0.25"]) {
      await row.getByText(fact).waitFor();
    }
    assert.equal(await page.locator(".row-heads").count(), 1, query);
    assert.equal(await row.locator(".row-link").getAttribute("href"), "#/sessions/week");
    await close(page);
  }
});

test("a filter by time leaves out what was last changed before", async (t) => {
  const old = await Bough.start();
  t.after(() => old.stop());
  await old.record("month", Date.now() - 20 * 24 * 3_600_000);
  await old.session("today", { title: "Of today" });
  const page = await open(browser, old, "#/sessions?since=30d");
  await page.locator(".row").nth(1).waitFor();
  await page.getByLabel("Time").selectOption("7d");
  await page.locator(".row").nth(1).waitFor({ state: "detached" });
  assert.deepEqual(await titles(page), ["Of today"]);
  assert.match(page.url(), /since=7d/);
  await close(page);
});

test("filters by status, agent, tool and metadata narrow the list", async () => {
  const check = async (query, expected) => {
    const page = await open(browser, server, `#/sessions?${query}`);
    await (expected.length === 0 ? see(page, "No session matches") : see(page, expected[0]));
    assert.deepEqual(await titles(page), expected, query);
    await close(page);
  };
  await check("status=error", ["Write release notes"]);
  await check("agent=builder", ["Parse ISO weeks"]);
  await check("tool=bash", ["Parse ISO weeks"]);
  await check("metadata=team%3Ddocs", ["Write release notes"]);
  await check("tool=bash&status=error", []);
});

test("filters that are not understood say so", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Parse ISO weeks");
  await page.getByLabel("Search titles and content").fill("tool:");
  await see(page, "This search is not understood");
  assert.equal(await page.locator(".row").count(), 0, "no rows of an earlier search stay");
  await checkAccess(page);
  await page.getByRole("link", { name: "Show all sessions" }).click();
  await see(page, "Parse ISO weeks");
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByLabel("Metadata").fill("team");
  await see(page, "Write key=value");
  await page.getByLabel("Metadata").fill("team=docs");
  await page.locator(".row", { hasText: "Parse ISO weeks" }).waitFor({ state: "detached" });
  assert.equal(await page.getByText("Write key=value").count(), 0);
  await close(page);
  const archived = await open(browser, server, "#/sessions?archived=yes&since=whenever");
  await see(archived, "No session matches");
  assert.ok(await archived.getByLabel("Archived").isChecked(), "a link shows the filters that it has");
  await close(archived);
});

test("what is typed while a dialog opens belongs to the dialog", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Parse ISO weeks");
  await page.keyboard.press("j");
  await page.locator('.row-link[data-index="0"]:focus').waitFor();
  // In the same moment, as fast fingers do: `a` would archive the session.
  await page.evaluate(async () => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
    await new Promise((resolve) => setTimeout(resolve));
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  });
  await page.getByRole("dialog").waitFor();
  await page.locator("dialog input:focus").waitFor();
  const selected = await page.locator("dialog input").evaluate((input) => input.selectionEnd - input.selectionStart === input.value.length);
  assert.ok(selected, "typing replaces the title");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".row").count(), 2);
  await close(page);
});

test("the way back from a session leads to the list as it was filtered", async () => {
  const page = await open(browser, server, "#/sessions?agent=builder");
  await page.locator(".row", { hasText: "Parse ISO weeks" }).getByRole("link").click();
  await page.getByRole("link", { name: "Tree" }).click();
  await page.getByRole("link", { name: "Back to the sessions" }).click();
  await page.locator(".row", { hasText: "Parse ISO weeks" }).waitFor();
  assert.match(page.url(), /#\/sessions\?agent=builder$/);
  assert.deepEqual(await titles(page), ["Parse ISO weeks"]);
  await close(page);
});

test("the way back from a session leads to the same place of the list", async (t) => {
  const many = await Bough.start();
  t.after(() => many.stop());
  const all = Array.from({ length: 260 }, (_, at) => `s${at}`);
  await Promise.all(all.map((id) => many.session(id, { title: `Session ${id}` })));
  const page = await open(browser, many, "#/sessions");
  const box = page.locator(".virtual");
  const last = page.locator('.row[aria-posinset="260"]');
  await page.locator(".row").first().waitFor();
  while ((await last.count()) === 0) {
    await box.evaluate((element) => (element.scrollTop = element.scrollHeight));
  }
  await box.evaluate((element) => (element.scrollTop = 7_000));
  const chosen = page.locator('.row[aria-posinset="165"] .row-link');
  const place = () => box.evaluate((element) => element.scrollTop);
  await chosen.click();
  await see(page, "Nothing was said yet");
  await many.session("news", { title: "Begun meanwhile" });
  // Pages behind the first are not given again.
  await page.route(/\/v1\/sessions\?.*cursor=/, (route) => route.abort());
  await page.getByRole("link", { name: "Back to the sessions" }).click();
  await page.locator('.row-link[data-index="164"]:focus').waitFor();
  assert.equal(await place(), 7_000);
  await box.evaluate((element) => (element.scrollTop = 0));
  await see(page, "Begun meanwhile");
  await close(page);
});

test("a session is renamed, archived and deleted, each with a way back", async () => {
  const page = await open(browser, server, "#/sessions");
  const act = async (title, action) => {
    await page.getByRole("button", { name: `Actions for ${title}` }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };
  await act("Write release notes", "Rename");
  await checkAccess(page);
  await page.getByLabel("Title", { exact: true }).fill("Write the notes");
  await page.getByRole("button", { name: "Rename" }).click();
  await see(page, "Write the notes");
  await page.getByRole("button", { name: "Undo" }).click();
  await see(page, "Write release notes");
  for (const action of ["Archive", "Delete"]) {
    await act("Write release notes", action);
    await page.locator(".row", { hasText: "Write release notes" }).waitFor({ state: "detached" });
    await page.keyboard.press("u");
    await page.locator(".row", { hasText: "Write release notes" }).waitFor();
  }
  await close(page);
});

test("a notice stays while the pointer is on it, and long enough to undo", async () => {
  await server.session("brief", { title: "Deleted in passing" });
  const page = await open(browser, server, "#/sessions", {}, (page) => page.clock.install());
  await page.locator(".row", { hasText: "Deleted in passing" }).getByRole("button").click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const toast = page.locator(".toast", { hasText: "Deleted “Deleted in passing”" });
  await toast.waitFor();
  await page.clock.fastForward(15_000);
  await toast.hover();
  await page.clock.fastForward(60_000);
  assert.equal(await toast.count(), 1);
  await page.mouse.move(10, 10);
  await page.clock.fastForward(15_000);
  assert.equal(await toast.count(), 1);
  await page.clock.fastForward(15_000);
  await toast.waitFor({ state: "detached" });
  await close(page);
});

test("deleted sessions are listed and brought back", async () => {
  await server.session("thrown", { title: "Thrown away" });
  await server.append("thrown", user("Please keep me"));
  await server.send("DELETE", "/sessions/thrown");
  const page = await open(browser, server, "#/sessions");
  await page.getByRole("link", { name: "Deleted" }).click();
  const row = page.locator("tr", { hasText: "Thrown away" });
  await row.getByRole("cell", { name: "1", exact: true }).waitFor();
  await checkAccess(page);
  await page.setViewportSize({ width: 360, height: 740 });
  await row.getByText(/^1 message, deleted .*, kept until/).waitFor();
  const button = await row.getByRole("button", { name: "Restore" }).boundingBox();
  assert.ok(button.x + button.width <= 344, "the button is in sight");
  await checkAccess(page);
  await row.getByRole("button", { name: "Restore" }).click();
  await row.waitFor({ state: "detached" });
  await page.locator(".toast").getByRole("link", { name: "Open" }).click();
  await see(page, "Please keep me");
  await server.send("DELETE", "/sessions/thrown");
  await close(page);
});

test("the keyboard reaches everything", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "Parse ISO weeks");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Next session").first().waitFor();
  await checkAccess(page);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.locator('.row-link[data-index="1"]:focus').waitFor();
  assert.equal(await page.title(), "Sessions – Bough");
  await page.keyboard.press("Enter");
  await page.locator(".transcript").waitFor();
  await page.waitForFunction(() => document.title === "Parse ISO weeks – Bough");
  await close(page);
});

test("an empty store says how to begin", async (t) => {
  const empty = await Bough.start();
  t.after(() => empty.stop());
  const page = await open(browser, empty, "");
  await see(page, "No sessions yet");
  await checkAccess(page);
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByLabel("Title", { exact: true }).fill("By hand");
  await page.getByRole("button", { name: "Create" }).click();
  await see(page, "Nothing was said yet");
  await close(page);
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { assistant, Bough } from "./server.mjs";

const DAY = 86_400_000;
let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
  const spend = (model, usage) => server.append("dear", assistant("Done.", { model, timestamp: Date.now(), usage }));
  await server.session("dear", { title: "A dear one", metadata: { agent: "builder" } });
  await spend("large", { input: 200, cache_read: 800, output: 100, cost_usd: 2 });
  await spend("small", { input: 1000, output: 50, cost_usd: 0.5 });
  await server.record("old", Date.now() - 60 * DAY);
  await server.send("PATCH", "/sessions/old", { title: "An old one" });
});

after(async () => {
  await browser.close();
  await server.stop();
});

const figure = (page, name) => page.locator(".figure", { has: page.getByText(name, { exact: true }) }).locator(".figure-value").innerText();

test("tokens and cost are told by day, model, agent and session, with their units", async () => {
  const page = await open(browser, server, "#/usage");
  await see(page, "Tokens per day");
  assert.equal(await figure(page, "Cost"), "$2.50");
  assert.equal(await figure(page, "From the cache"), "40 %");
  assert.equal(await page.locator(".chart rect").count(), 2);
  const labels = await page.locator(".chart-text").allTextContents();
  assert.ok(labels.includes("0") && labels.some((label) => /^[A-Z][a-z]+ \d+$/.test(label)), labels.join(" "));
  assert.equal(await figure(page, "Tokens"), "2.2K");
  await page.getByLabel("Time").selectOption("all");
  await page.locator(".figure-value", { hasText: "7.2K" }).waitFor();
  assert.equal(await page.locator(".chart rect").count(), 3);
  await page.getByLabel("Show").selectOption("cost");
  await see(page, "Cost per day, in US dollars");
  await page.getByRole("combobox", { name: /^By/ }).selectOption("agent");
  await page.getByRole("region", { name: "By agent" }).getByText("writer").waitFor();
  assert.match(page.url(), /since=all&of=cost&by=agent/);
  await page.reload();
  await page.getByRole("region", { name: "By agent" }).getByText("writer").waitFor();
  await page.getByRole("combobox", { name: /^By/ }).selectOption("session");
  await page.locator(".legend", { hasText: "A dear one" }).waitFor();
  await page.getByRole("link", { name: "An old one" }).click();
  await page.getByRole("heading", { level: 1, name: "An old one" }).waitFor();
  await close(page);
});

test("a store without use says so", async (t) => {
  const empty = await Bough.start();
  t.after(() => empty.stop());
  const page = await open(browser, empty, "#/usage");
  await see(page, "Nothing was used in this time");
  await close(page);
});

const panel = (page, title) => page.locator(".panel", { has: page.getByRole("heading", { name: title, exact: true }) });

const fact = (page, title, name, value) => panel(page, title).locator(".fact", { hasText: name }).getByText(value, { exact: true }).waitFor();

test("health shows the store, who follows it, and its limits", async () => {
  const watching = await open(browser, server, "#/sessions");
  await see(watching, "A dear one");
  const page = await open(browser, server, "#/health");
  await fact(page, "Store", "Sessions", "2");
  await fact(page, "Now", "Subscribers", "1");
  await fact(page, "Limits", "Largest request", "67.1 MB");
  await fact(page, "Limits of the store", "Longest entry id", "256 B");
  await fact(page, "Limits of the store", "Streams of a session", "64");
  await fact(page, "Configuration", "Refused reloads", "0");
  await fact(page, "Search index", "Complete", "yes");
  await close(watching);
  await fact(page, "Now", "Subscribers", "0");
  await close(page);
});

test("health says how large the store is, how many sessions are checkpointed, and what the last check of every byte found", async () => {
  const page = await open(browser, server, "#/health");
  await panel(page, "Size on disk").locator(".fact", { hasText: "Total" }).getByText(/\d (kB|MB)$/).waitFor();
  await panel(page, "Store").locator(".fact", { hasText: "Checkpointed" }).waitFor();
  await panel(page, "Store").locator(".fact", { hasText: "Counted at" }).waitFor();
  await panel(page, "Verification").getByText("nothing was checked yet").waitFor();
  await page.getByRole("button", { name: "Check every byte now" }).click();
  await panel(page, "Verification").getByText("every byte is what was written").waitFor();
  await fact(page, "Verification", "Damaged", "0");
  await checkAccess(page);
  await close(page);
});

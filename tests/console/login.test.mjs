import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { Bough } from "./server.mjs";

let server;
let browser;
let token;

before(async () => {
  const prepare = async (bough) => (token = (await bough.command("token", "create", "--name", "page", "--rights", "read,write")).trim());
  [server, browser] = await Promise.all([Bough.start(prepare), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

for (const colorScheme of ["light", "dark"]) {
  test(`the login is accessible in ${colorScheme}, wide and narrow`, async () => {
    for (const width of [1280, 360]) {
      const page = await open(browser, server, "", { colorScheme, viewport: { width, height: 740 } });
      await see(page, "This server asks for a token");
      await checkAccess(page);
      await close(page);
    }
  });
}

test("a server with tokens asks for one, and keeps it out of the page", async () => {
  const page = await open(browser, server, "#/sessions");
  await see(page, "This server asks for a token");
  await checkAccess(page);
  await page.getByLabel("Token").fill("bough_x_y");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("alert").getByText("The server does not know this token").waitFor();
  assert.ok((await page.getByLabel("Token").evaluate((input) => input === document.activeElement && input.ariaInvalid === "true")), "the next token can be typed at once");
  assert.match(await page.getByLabel("Token").evaluate((input) => document.getElementById(input.getAttribute("aria-describedby")).textContent), /does not know/);
  await page.locator(".login .brand-mark").waitFor();
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Open" }).click();
  await see(page, "No sessions yet");
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
  assert.ok(!kept.includes(token.slice(-12)), "scripts cannot find the token");
  await page.reload();
  await see(page, "No sessions yet");
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByLabel("Title", { exact: true }).fill("With the cookie");
  await page.getByRole("button", { name: "Create" }).click();
  await see(page, "Nothing was said yet");
  await close(page);
});

test("who logged in can log out", async () => {
  const page = await open(browser, server, "#/sessions");
  assert.equal(await page.getByRole("button", { name: "Log out" }).count(), 0);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Log out" }).click();
  await see(page, "This server asks for a token");
  assert.deepEqual(await page.context().cookies(server.origin), []);
  await close(page);
});

test("a page of another origin gets nothing with the cookie", async () => {
  const page = await open(browser, server, "#/sessions");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  const other = await page.context().newPage();
  await other.route("http://evil.invalid/", (route) => route.fulfill({ contentType: "text/html", body: "<p>evil</p>" }));
  await other.goto("http://evil.invalid/");
  const read = (path, options) =>
    other.evaluate(([path, options]) => fetch(path, { credentials: "include", ...options }).then((answer) => answer.status, () => "refused"), [path, options]);
  assert.equal(await read(`${server.origin}/v1/sessions`, {}), "refused");
  assert.equal(await read(`${server.origin}/v1/sessions`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }), "refused");
  const { length } = JSON.parse(await page.evaluate(() => fetch("/v1/sessions").then((answer) => answer.text()))).sessions;
  assert.ok(length <= 1, "nothing was written");
  await close(page);
});

test("a page of another origin cannot log a browser in", async () => {
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.route("http://evil.invalid/", (route) => route.fulfill({ contentType: "text/html", body: "<p>evil</p>" }));
  await other.goto("http://evil.invalid/");
  const attempts = [{ headers: { authorization: `Bearer ${token}` } }, { mode: "no-cors" }, { mode: "no-cors", body: new URLSearchParams({ token }).toString(), headers: { "content-type": "application/x-www-form-urlencoded" } }];
  for (const options of attempts) {
    await other.evaluate(([url, options]) => fetch(url, { method: "POST", credentials: "include", ...options }).catch(() => undefined), [`${server.origin}/v1/login`, options]);
  }
  assert.deepEqual(await context.cookies(server.origin), []);
  const page = await context.newPage();
  await page.goto(`${server.origin}/`);
  await see(page, "This server asks for a token");
  await context.close();
});

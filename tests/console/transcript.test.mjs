import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccess, close, launch, open, see } from "./browser.mjs";
import { assistant, Bough, call, NOON, result, user } from "./server.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Bough.start(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

test("a transcript shows Markdown, code, thoughts, tools with their results, diffs, pictures and errors", async () => {
  await server.session("all", { title: "Everything" });
  await server.append("all", user("# Please\n\n- mend **it**\n\n| a | b |\n|---|---|\n| 1 | 2 |"));
  const edit = { path: "src/a.rs", old_text: "let a = 1;\nlet b = 2;", new_text: "let a = 1;\nlet b = 3;" };
  await server.append("all", assistant([{ type: "thinking", text: "I wonder" }, { type: "text", text: "```rust\nfn main() {}\n```" }, call("1", "edit", edit), call("2", "bash", { command: "make" })]));
  await server.append("all", result("1", "edit", "changed", { timestamp: NOON + 1_500 }));
  await server.append("all", result("2", "bash", "no rule to make target", { is_error: true }));
  await server.append("all", { role: "user", content: [{ type: "image", mime: "image/png", data: PIXEL }], timestamp: NOON });
  await server.append("all", assistant("", { stop_reason: "error", error_message: "The provider is overloaded" }));
  const page = await open(browser, server, "#/sessions/all");
  await page.getByRole("heading", { name: "Please" }).waitFor();
  await page.locator("td", { hasText: "2" }).waitFor();
  await page.locator(".hljs-keyword", { hasText: "fn" }).waitFor();
  await see(page, "The provider is overloaded");
  assert.equal(await page.locator("img.picture").evaluate((picture) => picture.decode().then(() => picture.naturalWidth)), 1);
  const tool = page.locator("details", { hasText: "src/a.rs" });
  assert.equal(await page.locator(".message-function_result").count(), 0, "results stand beside their calls");
  await tool.getByText("1.5 s").waitFor();
  await tool.locator("summary").click();
  await tool.locator(".diff-added", { hasText: "let b = 3;" }).waitFor();
  await tool.getByText("changed").waitFor();
  await page.locator("details.fold-bad", { hasText: "failed" }).locator("summary").click();
  await page.locator("details", { hasText: "Thinking" }).locator("summary").click();
  await checkAccess(page);
  await close(page);
});

test("a hostile transcript stays text", async () => {
  const attack = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "[link](javascript:window.hacked=3) ![picture](https://pictures.invalid/x.png)",
    "<style>body { display: none }</style><iframe srcdoc='<script>parent.hacked=4</script>'></iframe>",
    "`<b>code</b>` \u202Etxt.exe \u001b[2J",
    "```html\n<script>window.hacked = 5</script>\n```",
    "| <svg onload=window.hacked=6> |\n|---|\n| <a href='javascript:window.hacked=7'>x</a> |",
  ].join("\n\n");
  await server.session("hostile", { title: "<img src=x onerror='window.hacked=8'>\u202E", metadata: { agent: "<b>bold</b>" } });
  await server.append("hostile", user(attack));
  await server.append("hostile", assistant([{ type: "thinking", text: attack }, call("<script>", "<script>window.hacked=9</script>", { path: "<b>", old_text: attack, new_text: "x" })]));
  await server.append("hostile", result("<script>", "bash", attack));
  await server.append("hostile", { role: "user", content: [{ type: "image", mime: "image/svg+xml", data: btoa("<svg xmlns='http://www.w3.org/2000/svg' onload='parent.hacked=10'/>") }], timestamp: NOON });
  await server.append("hostile", { role: "custom", custom_type: "<u>notice</u>", content: [{ type: "text", text: attack }], timestamp: NOON });
  const requests = [];
  const page = await open(browser, server, "#/sessions");
  page.on("request", (request) => requests.push(new URL(request.url()).origin));
  await page.locator(".row-title", { hasText: "onerror" }).click();
  await page.locator(".message-user").first().waitFor();
  for (const summary of await page.locator("summary").all()) {
    await summary.click();
  }
  await page.locator("pre", { hasText: "window.hacked = 5" }).first().waitFor();
  await see(page, "[U+202E]txt.exe");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator(".main script, .main iframe, .main style, .main img, .main b, .main u, [onerror], [onload]").count(), 0);
  assert.equal(await page.locator("a[href^='javascript' i]").count(), 0);
  assert.deepEqual(requests.filter((origin) => origin !== server.origin), []);
  await close(page);
});

test("the page's policy refuses what would make HTML of text", async () => {
  const page = await open(browser, server, "");
  const refused = await page.evaluate(() => {
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
      return "taken";
    } catch (error) {
      return error.name;
    }
  });
  assert.equal(refused, "TypeError");
  await page.context().close();
});

test("a compaction shows which messages it hides, and where the model reads on", async () => {
  await server.session("compacted", { title: "Compacted" });
  const ids = [];
  for (const text of ["The first question", "The second question", "The third question"]) {
    const { entry_id: id } = await server.append("compacted", user(text));
    ids.push(id);
  }
  const data = { summary: "Two questions were asked.", first_kept_entry_id: ids[2], tokens_before: 900 };
  await server.send("POST", "/sessions/compacted/entries", { custom: { custom_type: "bough.compaction", data } });
  await server.append("compacted", user("The fourth question"));
  const page = await open(browser, server, "#/sessions/compacted");
  const line = page.locator(".kept-line");
  await line.waitFor();
  const next = await line.evaluate((element) => element.nextElementSibling.dataset.entry);
  assert.equal(next, ids[2]);
  await page.locator(".notice summary").click();
  const hidden = page.locator(".hidden-entries li");
  await hidden.first().waitFor();
  assert.deepEqual(await hidden.locator("a").allInnerTexts(), ["User\nThe first question", "User\nThe second question"]);
  await page.getByText("it stands for 2 entries").waitFor();
  await checkAccess(page);
  await hidden.nth(1).getByRole("link").click();
  await page.locator(`[data-entry="${ids[1]}"][data-target]`).waitFor();
  await close(page);
});

test("a reply is stored, an edit makes a branch, and a fork is a session", async () => {
  await server.session("talk", { title: "Talk" });
  await server.append("talk", user("What is it?"), { entry_id: "q" });
  await server.append("talk", assistant("It is a tree."), { entry_id: "a" });
  const page = await open(browser, server, "#/sessions/talk");
  await see(page, "It is a tree.");
  await page.getByLabel("Write a message to this session").fill("And then?");
  await page.keyboard.press("Control+Enter");
  await page.locator(".message-user", { hasText: "And then?" }).waitFor();
  const act = async (text, action) => {
    await page.locator(".message", { hasText: text }).getByRole("button", { name: /^Actions/ }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };
  await act("And then?", "Edit on a new branch");
  await page.getByLabel("The message on a new branch").fill("And before?");
  await page.getByRole("button", { name: "Save as a branch" }).click();
  await page.locator(".message-user", { hasText: "And before?" }).waitFor();
  await page.getByText("And then?").waitFor({ state: "detached" });
  await act("It is a tree.", "Continue from here");
  await page.getByText("And before?").waitFor({ state: "detached" });
  await act("What is it?", "Edit on a new branch");
  await page.getByLabel("The message on a new branch").fill("Who is it?");
  await page.getByRole("button", { name: "Save as a branch" }).click();
  await see(page, "Who is it?");
  await page.getByText("It is a tree.").waitFor({ state: "detached" });
  const { branches } = await server.send("GET", "/sessions/talk/branches");
  assert.equal(branches.length, 3);
  await act("Who is it?", "Fork to a new session");
  await see(page, "forked from another session");
  assert.equal(await page.locator(".message").count(), 1);
  await close(page);
});

test("a reply that comes too late is kept, and says so", async () => {
  await server.session("late", { title: "Late" });
  await server.append("late", user("First"));
  const page = await open(browser, server, "#/sessions/late");
  await see(page, "First");
  // The page hears nothing of what others write, and sends what it has typed.
  await page.route("**/events?**", (route) => route.abort());
  const field = page.getByLabel("Write a message to this session");
  await field.fill("Mine");
  await page.route("**/entries", async (route) => {
    await server.append("late", user("Theirs"));
    await route.continue();
  });
  await page.keyboard.press("Control+Enter");
  await see(page, "Somebody wrote to this session meanwhile");
  assert.equal(await field.inputValue(), "Mine");
  await close(page);
});

test("a link to an entry of another branch shows that branch, and can make it active", async () => {
  await server.session("two", { title: "Two ways" });
  await server.append("two", user("Root"), { entry_id: "root" });
  await server.append("two", assistant("Left way"), { entry_id: "left" });
  await server.append("two", assistant("Right way"), { parent_id: "root", entry_id: "right" });
  const page = await open(browser, server, "#/sessions/two?entry=left");
  await page.locator("[data-target]", { hasText: "Left way" }).waitFor();
  await see(page, "another branch");
  await checkAccess(page);
  await page.getByRole("button", { name: "Make it active" }).click();
  await page.getByLabel("Write a message to this session").waitFor();
  await see(page, "Left way");
  await close(page);
});

test("the versions of a message are reached from each other", async () => {
  await server.session("versions", { title: "Versions" });
  await server.append("versions", user("Root"), { entry_id: "root" });
  for (const number of [1, 2, 3]) {
    await server.append("versions", assistant(`Version ${number}`), { parent_id: "root", entry_id: `v${number}` });
  }
  const page = await open(browser, server, "#/sessions/versions");
  const versions = page.getByRole("navigation", { name: "Versions of this message" });
  await versions.getByText("3 of 3").waitFor();
  assert.equal(await versions.getByRole("link", { name: "Next version" }).count(), 0);
  await versions.getByRole("link", { name: "Previous version" }).click();
  await see(page, "Version 2");
  await versions.getByText("2 of 3").waitFor();
  await checkAccess(page);
  await versions.getByRole("link", { name: "Next version" }).click();
  await see(page, "Version 3");
  await close(page);
});

test("links that lead nowhere say so", async () => {
  const page = await open(browser, server, "#/sessions/nobody");
  await see(page, "There is no such session");
  await checkAccess(page);
  await close(page);
  for (const view of ["tree", "loops", "compare?left=a&right=b"]) {
    const missing = await open(browser, server, `#/sessions/nobody/${view}`);
    await see(missing, "There is no such session");
    await close(missing);
  }
  await server.session("short", { title: "Short" });
  await server.append("short", user("All there is"));
  for (const link of ["?entry=nothing", "/compare?left=nothing&right=nobody"]) {
    const missing = await open(browser, server, `#/sessions/short${link}`);
    await see(missing, "There is no such entry");
    await missing.getByRole("link", { name: "Read the session" }).click();
    await see(missing, "All there is");
    await missing.evaluate(() => (location.hash = "#/sessions/short?entry=another"));
    await see(missing, "There is no such entry");
    await close(missing);
  }
  const other = await open(browser, server, "#/nothing");
  await see(other, "There is nothing here");
  await close(other);
});

test("a deleted session says so while one looks, and comes back", async () => {
  await server.session("gone", { title: "Gone" });
  await server.append("gone", user("Still here"));
  const page = await open(browser, server, "#/sessions/gone");
  await see(page, "Still here");
  await server.send("DELETE", "/sessions/gone");
  await see(page, "This session was deleted");
  await checkAccess(page);
  await server.send("POST", "/trash/gone/undelete", {});
  await see(page, "Still here");
  await close(page);
});

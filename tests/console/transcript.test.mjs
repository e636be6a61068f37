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
    "`<b>code</b>` \u202Etxt.exe \u001b[2J hid\u200Bden",
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
  await see(page, "hid[U+200B]den");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator(".main script, .main iframe, .main style, .main img, .main b, .main u, [onerror], [onload]").count(), 0);
  assert.equal(await page.locator("a[href^='javascript' i]").count(), 0);
  assert.deepEqual(requests.filter((origin) => origin !== server.origin), []);
  await close(page);
});

test("messages that nest without end, of many lines or of one, leave the others readable", async () => {
  const lists = Array.from({ length: 400 }, (_, depth) => `${" ".repeat(2 * depth)}- x`).join("\n");
  const hostile = [">".repeat(50_000), "- ".repeat(5_000), lists, "> - ".repeat(2_000), "_a".repeat(50_000), "```\n".repeat(20_000), `e${"\u0301".repeat(50_000)}`];
  await server.session("endless", { title: "Endless" });
  await server.appendMany("endless", [...hostile, "x".repeat(2_000_000), "line\n".repeat(200_000)].map((text) => assistant(text)));
  await server.append("endless", assistant("The last words."));
  const page = await open(browser, server, "#/sessions/endless");
  await see(page, "The last words.");
  await see(page, "[49992 more marks]");
  assert.equal(await page.locator(".message").count(), hostile.length + 3);
  assert.equal(await page.locator(".transcript-box").evaluate((box) => box.scrollWidth > box.clientWidth), false, "nothing is wider than the page");
  await page.getByRole("button", { name: "Show all 1,000,000 characters" }).click();
  await page.getByRole("button", { name: "Show all 1,000,000 characters" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Show all 2,000,000 characters" }).waitFor();
  await close(page);
});

test("an answer that the page does not expect is no white page", async () => {
  await server.session("odd", { title: "Odd" });
  await server.append("odd", assistant("The first words."), { entry_id: "odd" });
  await server.append("odd", assistant("The last words."));
  const page = await open(browser, server, "", {}, async (page) => {
    await page.route(/\/v1\/sessions\/odd\/messages/, async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      delete answer.messages.find((item) => item.entry_id === "odd").message.content[0].text;
      await route.fulfill({ response, json: answer });
    });
    await page.route(/\/v1\/health/, (route) => route.fulfill({ json: { status: 1, store: [] } }));
  });
  await page.goto(`${server.origin}/#/sessions/odd`);
  await see(page, "The last words.");
  await see(page, "This message could not be drawn.");
  await page.goto(`${server.origin}/#/health`);
  await page.getByRole("heading", { name: "This view failed" }).waitFor();
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.locator(".row").first().waitFor();
  await page.context().close();
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

test("patches and diffs are drawn as such, and both sides of a call are copied", async () => {
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old words\n+new words\n*** End Patch";
  const diff = "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+two\n";
  await server.session("patched", { title: "Patched" });
  await server.append("patched", assistant([call("1", "apply_patch", { input: patch }), call("2", "bash", { command: "git diff" })]));
  await server.append("patched", result("1", "apply_patch", "Done"));
  await server.append("patched", result("2", "bash", diff));
  const page = await open(browser, server, "#/sessions/patched", { permissions: ["clipboard-read", "clipboard-write"] });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const [patched, shown] = [page.locator("details").nth(0), page.locator("details").nth(1)];
  await patched.locator("summary").click();
  await patched.locator(".diff-added", { hasText: "new words" }).waitFor();
  await patched.locator(".diff-removed", { hasText: "old words" }).waitFor();
  await shown.locator("summary").click();
  await shown.locator(".diff-added", { hasText: "two" }).waitFor();
  await shown.getByRole("button", { name: "Copy the result" }).click();
  await see(page, "Copied the result");
  assert.equal(await copied(), diff);
  await shown.getByRole("button", { name: "Copy the arguments" }).click();
  await see(page, "Copied the arguments");
  assert.equal(await copied(), "git diff");
  await checkAccess(page);
  await close(page);
});

test("a message, its link and the conversation are copied", async () => {
  await server.session("copied", { title: "Copied" });
  await server.append("copied", user("What is **it**?"), { entry_id: "q" });
  await server.append("copied", assistant("A tree."));
  const page = await open(browser, server, "#/sessions/copied", { permissions: ["clipboard-read", "clipboard-write"] });
  const copy = async (place, action) => {
    await place.getByRole("button", { name: /^Actions/ }).click();
    await page.getByRole("menuitem", { name: action }).click();
    await page.locator(".toast", { hasText: "Copied" }).waitFor();
    await page.getByRole("button", { name: "Dismiss" }).click();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const question = page.locator(".message-user");
  assert.equal(await copy(question, "Copy as Markdown"), "## User\n\nWhat is **it**?");
  assert.equal(await copy(question, "Copy link"), `${server.origin}/#/sessions/copied?entry=q`);
  assert.equal(await copy(page.locator(".session-head"), "Copy as Markdown"), "# Copied\n\n## User\n\nWhat is **it**?\n\n## Assistant\n\nA tree.\n");
  await close(page);
});

test("times are those of the reader's zone", async () => {
  await server.session("when", { title: "When" });
  await server.append("when", user("At noon"));
  for (const [timezoneId, time] of [["Asia/Tokyo", "09:00 PM"], ["America/New_York", "07:00 AM"]]) {
    const page = await open(browser, server, "#/sessions/when", { timezoneId, locale: "en-US" });
    await page.locator(".message time", { hasText: time }).waitFor();
    await close(page);
  }
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
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".message-user", { hasText: "And before?" }).waitFor();
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

const editing = async (page, text) => {
  await page.locator(".message", { hasText: text }).getByRole("button", { name: /^Actions/ }).click();
  await page.getByRole("menuitem", { name: "Edit on a new branch" }).click();
  return page.getByLabel("The message on a new branch");
};

test("an edit of the first message that fails leaves everything as it was", async () => {
  await server.session("first", { title: "First" });
  await server.append("first", user("What is it?"), { entry_id: "q" });
  await server.append("first", assistant("It is a tree."), { entry_id: "a" });
  const page = await open(browser, server, "#/sessions/first");
  const field = await editing(page, "What is it?");
  await field.fill("Who is it?");
  await page.route("**/entries", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"detail":"the disk is full","code":"session/storage"}' }));
  await page.getByRole("button", { name: "Save as a branch" }).click();
  await see(page, "The disk is full");
  assert.equal(await field.inputValue(), "Who is it?");
  await see(page, "It is a tree.");
  const { active_leaf: leaf } = await server.send("GET", "/sessions/first");
  assert.equal(leaf, "a");
  await page.unroute("**/entries");
  await page.getByRole("button", { name: "Save as a branch" }).click();
  await page.locator(".message-user", { hasText: "Who is it?" }).waitFor();
  await close(page);
});

test("a path without entries leads to the branches that there are", async () => {
  await server.session("cleared", { title: "Cleared" });
  await server.append("cleared", user("Once said"), { entry_id: "said" });
  await server.send("DELETE", "/sessions/cleared/leaf");
  const page = await open(browser, server, "#/sessions/cleared");
  await see(page, "The active path is empty");
  await checkAccess(page);
  await page.getByRole("link", { name: "Show the tree" }).click();
  await page.locator('.tree-node[data-entry="said"]').waitFor();
  await close(page);
});

test("an edited message keeps its pictures, and a reply can be edited too", async () => {
  await server.session("seen", { title: "Seen" });
  const content = [{ type: "text", text: "Look at this" }, { type: "image", mime: "image/png", data: PIXEL }];
  await server.append("seen", { role: "user", content, timestamp: NOON });
  await server.append("seen", assistant("It is red.", { usage: { input: 10, output: 2, cost_usd: 1 } }));
  const page = await open(browser, server, "#/sessions/seen");
  await see(page, "It is red.");
  const reply = await editing(page, "It is red.");
  await reply.fill("It is blue.");
  await page.keyboard.press("Control+Enter");
  await page.locator(".message-assistant", { hasText: "It is blue." }).waitFor();
  const field = await editing(page, "Look at this");
  await page.locator(".composer img.picture").waitFor();
  await field.fill("Look closely");
  await page.getByRole("button", { name: "Save as a branch" }).click();
  await page.locator(".message-user", { hasText: "Look closely" }).locator("img.picture").waitFor();
  const { messages } = await server.send("GET", "/sessions/seen/messages");
  assert.deepEqual(messages.map((item) => item.message.content), [[{ type: "text", text: "Look closely" }, content[1]]]);
  const { details } = await server.send("GET", "/sessions/seen");
  assert.equal(details.usage.total.cost_usd, 1, "an edit costs nothing");
  await close(page);
});

test("what was typed stays while one looks elsewhere, and the browser asks before it is lost", async () => {
  await server.session("draft", { title: "Draft" });
  await server.append("draft", user("What is it?"), { entry_id: "q" });
  const page = await open(browser, server, "#/sessions/draft");
  const field = page.getByLabel("Write a message to this session");
  const elsewhere = async () => {
    await page.getByRole("link", { name: "Tree" }).click();
    await page.locator(".tree-node").first().waitFor();
    await page.getByRole("link", { name: "Transcript" }).click();
    await field.waitFor();
  };
  await field.fill("Not sent yet");
  await (await editing(page, "What is it?")).fill("Not saved yet");
  await elsewhere();
  assert.equal(await field.inputValue(), "Not sent yet");
  assert.equal(await page.getByLabel("The message on a new branch").inputValue(), "Not saved yet");
  const asked = page.waitForEvent("dialog");
  // Nothing waits for the reload, which does not come.
  await page.evaluate(() => void setTimeout(() => location.reload()));
  const dialog = await asked;
  assert.equal(dialog.type(), "beforeunload");
  await dialog.dismiss();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".message-user", { hasText: "Not sent yet" }).waitFor();
  await elsewhere();
  assert.equal(await field.inputValue(), "");
  assert.equal(await page.getByLabel("The message on a new branch").count(), 0);
  // Nothing is left to lose.
  await page.reload();
  await page.locator(".message-user", { hasText: "Not sent yet" }).waitFor();
  await close(page);
});

test("a wide table is scrolled on a narrow page, and its words stay whole", async () => {
  await server.session("table", { title: "Table" });
  const cells = Array.from({ length: 9 }, (_, at) => `measurement${at}`);
  await server.append("table", assistant(`| ${cells.join(" | ")} |\n|${"---|".repeat(9)}\n| ${cells.join(" | ")} |`));
  const page = await open(browser, server, "#/sessions/table", { viewport: { width: 360, height: 740 } });
  await page.locator("td").first().waitFor();
  const lines = await page.locator("td").evaluateAll((found) => found.map((cell) => Math.round(cell.getBoundingClientRect().height)));
  assert.ok(lines.every((height) => height < 40), lines.join(" "));
  const isScrolled = await page.locator(".table-box").evaluate((box) => box.scrollWidth > box.clientWidth);
  assert.ok(isScrolled);
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

test("nothing is typed into a message that is on its way", async () => {
  await server.session("slow", { title: "Slow" });
  const page = await open(browser, server, "#/sessions/slow");
  const field = page.getByLabel("Write a message to this session");
  await field.fill("Mine");
  let typed;
  await page.route("**/entries", async (route) => {
    await page.keyboard.type(" and more");
    typed = await field.inputValue();
    await route.continue();
  });
  await page.keyboard.press("Control+Enter");
  await page.locator(".message-user", { hasText: /Mine$/ }).waitFor();
  assert.equal(typed, "Mine", "what would be lost is not taken");
  assert.equal(await field.inputValue(), "");
  await page.keyboard.type("Next");
  assert.equal(await field.inputValue(), "Next");
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
  const versions = page.getByRole("group", { name: "Versions of this message" });
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
  await server.send("DELETE", "/sessions/gone");
  await page.getByRole("button", { name: "Restore" }).click();
  await see(page, "Still here");
  await close(page);
});

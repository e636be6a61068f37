// Draws the pictures of docs/images from the sessions of `bough demo`: tests/console/run.sh pictures
import { join } from "node:path";
import { launch, open } from "./browser.mjs";
import { Bough } from "./server.mjs";

const IMAGES = process.env.BOUGH_CONSOLE_IMAGES;
const WIDE = { viewport: { width: 1280, height: 800 }, colorScheme: "light" };
const DARK = { ...WIDE, colorScheme: "dark" };
const NARROW = { viewport: { width: 360, height: 740 }, colorScheme: "light", deviceScaleFactor: 2 };

const [server, browser] = await Promise.all([Bough.start((bough) => bough.command("demo")), launch()]);

async function picture(name, options, hash, ready, prepare = async () => {}) {
  const page = await open(browser, server, hash, options);
  await page.locator(ready).first().waitFor();
  await prepare(page);
  await page.screenshot({ path: join(IMAGES, `console-${name}.png`) });
  await page.context().close();
}

/** Opens the edit that the session is about. */
async function unfold(page) {
  const edit = page.locator(".message .fold", { has: page.locator("strong", { hasText: /^edit$/ }) }).last();
  await edit.locator("summary").click();
  await edit.locator(".diff").waitFor();
  await edit.evaluate((element) => element.scrollIntoView({ block: "center" }));
}

const sessionNamed = async (title) => {
  const { sessions } = await server.send("GET", "/sessions");
  return `#/sessions/${sessions.find((session) => session.title === title).session_id}`;
};

/** Shows what the last check of every byte found, where the server can make one. */
async function verified(page) {
  const button = page.getByRole("button", { name: "Check every byte now" });
  if ((await button.count()) > 0) {
    await button.click();
    await page.getByText("every byte is what was written").first().waitFor();
  }
}

async function branchChosen(page) {
  await page.locator(".tree-node:not(.tree-active) .tree-target").last().click();
  await page.getByRole("link", { name: "Read side by side" }).waitFor();
}

try {
  const recorded = await sessionNamed("Make the report page faster");
  const edited = await sessionNamed("Accept ISO week dates in the calendar parser");
  await picture("sessions", WIDE, "#/sessions", ".row");
  await picture("transcript", WIDE, edited, ".message", unfold);
  await picture("transcript-dark", DARK, edited, ".message", unfold);
  await picture("tree", WIDE, `${recorded}/tree`, ".tree-node", branchChosen);
  await picture("compare", WIDE, `${recorded}/tree`, ".tree-node", async (page) => {
    await branchChosen(page);
    await page.getByRole("link", { name: "Read side by side" }).click();
    await page.locator(".compare .message").first().waitFor();
  });
  await picture("loops", WIDE, `${recorded}/loops`, ".bar-turn");
  await picture("usage", WIDE, "#/usage?of=cost", ".chart rect");
  await picture("health", WIDE, "#/health", ".panel", verified);
  await picture("narrow", NARROW, edited, ".message", unfold);
  await picture("narrow-sessions", NARROW, "#/sessions", ".row");
  await picture("narrow-tree", NARROW, `${recorded}/tree`, ".tree-node");
  await picture("narrow-loops", NARROW, `${recorded}/loops`, ".bar-turn");
} finally {
  await browser.close();
  await server.stop();
}

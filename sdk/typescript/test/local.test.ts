/** A server that the client starts by itself. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";

import { Bough, StartFailed } from "../src/index.js";
import { localFetch, socketFor } from "../src/local.js";
import { all, textOf } from "./server.js";

let folder: string;
const programs: ChildProcess[] = [];
const { BOUGH, PATH } = process.env;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "bough-local-"));
});

afterEach(async () => {
  Object.assign(process.env, { BOUGH, PATH });
  for (const program of programs.splice(0)) program.kill("SIGKILL");
  for (const pid of await servers()) process.kill(pid, "SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** The servers that run on the folder. */
async function servers(): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (words.split("\0").includes("serve") && words.split("\0").includes(folder)) found.push(Number(pid));
  }
  return found;
}

/** Another program, which says something in the session `shared` and waits. */
function program(text: string, idleExit = 600): ChildProcess {
  const script = `
    const { Bough } = await import(${JSON.stringify(new URL("../src/index.js", import.meta.url).href)});
    await Bough.local(${JSON.stringify(folder)}, { idleExit: ${idleExit} }).session("shared").append(${JSON.stringify(text)}, { create: true });
    console.log("done");
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: ["ignore", "pipe", "inherit"] });
  programs.push(child);
  return child;
}

/** Waits until a program has said its text. */
async function isDone(child: ChildProcess): Promise<void> {
  assert.ok(child.stdout);
  for await (const line of createInterface({ input: child.stdout })) if (line === "done") return;
  assert.fail("the program ended");
}

/** A client without Unix sockets. */
function overLoopback(): Bough {
  return new Bough({ url: "http://localhost", fetch: localFetch(folder, 60, false) });
}

test("a server is started and used, and its events are followed", async () => {
  const bough = Bough.local(folder);
  const session = await bough.create({ title: "local" });
  const watch = await session.watch({ types: ["session::message-added"] }).ready();
  await session.append("hello");
  const { value } = await watch.next();
  watch.close();
  assert.equal(value?.type, "session::message-added");
  assert.equal((await Bough.local(folder).session(session.id).meta()).title, "local");
  assert.equal((await servers()).length, 1);
});

test("programs that start at once share one server", async () => {
  await Promise.all(["0", "1", "2"].map((text) => isDone(program(text))));
  const said = (await all(Bough.local(folder).session("shared").messages())).map((entry) => textOf(entry.message));
  assert.deepEqual(said.sort(), ["0", "1", "2"]);
  assert.equal((await servers()).length, 1);
});

test("the server outlives the program that started it", async () => {
  const first = program("first");
  await isDone(first);
  const running = await servers();
  first.kill("SIGKILL");
  await new Promise((resolve) => first.once("exit", resolve));
  assert.equal((await all(Bough.local(folder).session("shared").messages())).length, 1);
  assert.deepEqual(await servers(), running);
});

for (const [name, local] of [["a socket", () => Bough.local(folder)], ["a loopback address", overLoopback]] as const) {
  test(`a server on ${name} that was killed is started again`, async () => {
    const session = await local().create();
    await session.append("before");
    for (const pid of await servers()) process.kill(pid, "SIGKILL");
    await session.append("after");
    assert.equal((await all(session.messages())).length, 2);
    const sockets = (await readdir(folder)).filter((file) => file === "server.sock").length;
    assert.equal(sockets, name === "a socket" ? 1 : 0);
  });
}

test("clients without sockets that start at once share one server", async () => {
  await Promise.all([overLoopback(), overLoopback(), overLoopback()].map((bough) => bough.create()));
  assert.equal((await servers()).length, 1);
});

test("the claim of a starter that was killed is taken over", async () => {
  const claim = join(folder, "local-server.start");
  await writeFile(claim, "");
  await utimes(claim, 0, 0);
  await overLoopback().create();
  assert.ok(!(await readdir(folder)).includes("local-server.start"));
});

test("a server ends after its last client", async () => {
  const only = program("only", 1);
  await isDone(only);
  assert.equal((await servers()).length, 1);
  only.kill("SIGKILL");
  while ((await servers()).length > 0) continue;
});

test("a program that cannot start says why", async () => {
  process.env["BOUGH"] = "/bin/false";
  await assert.rejects(Bough.local(folder).create(), StartFailed);
  delete process.env["BOUGH"];
  process.env["PATH"] = "";
  await assert.rejects(Bough.local(folder).create(), StartFailed);
  assert.throws(() => Bough.local(folder, { idleExit: 0 }), RangeError);
});

test("a long path has its socket elsewhere", () => {
  const long = join(folder, "x".repeat(100));
  assert.ok(Buffer.byteLength(socketFor(long)) <= 100);
  assert.notEqual(socketFor(long), socketFor(join(long, "y")));
  assert.equal(socketFor(folder), join(folder, "server.sock"));
});

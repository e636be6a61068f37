// A Bough server of its own for each test, and the requests that fill it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = process.env.BOUGH;

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

const running = new Set();
// A test that fails must not leave its server behind.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Bough {
  /** A server on an empty folder, after something was done to the folder. */
  static async start(prepare = async () => {}) {
    const bough = new Bough();
    bough.data = mkdtempSync(join(tmpdir(), "bough-console-"));
    bough.port = await freePort();
    bough.origin = `http://127.0.0.1:${bough.port}`;
    await prepare(bough);
    await bough.run();
    return bough;
  }

  /** Starts the program on the data and the port that this server has, and waits until it answers. */
  async run() {
    const args = ["serve", "--data-dir", this.data, "--listen", `127.0.0.1:${this.port}`, "--bus", "off"];
    this.process = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "inherit"] });
    running.add(this.process);
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
    for (;;) {
      const answer = await fetch(`${this.origin}/healthz`).catch(() => undefined);
      if (answer?.ok) {
        return;
      }
      if (this.process.exitCode !== null) {
        throw new Error(`bough serve ended with ${this.process.exitCode}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Ends the program without a chance to say goodbye. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
    running.delete(this.process);
  }

  async stop() {
    await this.kill();
    rmSync(this.data, { recursive: true, force: true });
  }

  command(...args) {
    return new Promise((resolve, reject) => {
      const run = spawn(PROGRAM, [...args, "--data-dir", this.data], { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      run.stdout.on("data", (piece) => (text += piece));
      run.once("exit", (code) => (code === 0 ? resolve(text) : reject(new Error(`bough ${args[0]} ended with ${code}`))));
    });
  }

  async send(method, path, body) {
    const options = { method, headers: { "content-type": "application/json" } };
    if (body !== undefined) {
      options.body = JSON.stringify(body);
    }
    const answer = await fetch(`${this.origin}/v1${path}`, options);
    const text = await answer.text();
    if (!answer.ok) {
      throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    }
    return text === "" ? undefined : JSON.parse(text);
  }

  session(id, fields = {}) {
    return this.send("PUT", `/sessions/${encodeURIComponent(id)}`, fields);
  }

  append(session, message, fields = {}) {
    return this.send("POST", `/sessions/${encodeURIComponent(session)}/entries`, { message, ...fields });
  }

  appendMany(session, messages) {
    const entries = messages.map((message) => ({ message }));
    return this.send("POST", `/sessions/${encodeURIComponent(session)}/entries/batch`, { entries });
  }

  /** Records an agent with one reply at a time of the past, which only a recorder may do. */
  record(session, at) {
    const usage = { input: 5000, output: 10, reasoning: 0, cache_read: 0, cache_write: 0, total_tokens: 5010 };
    const content = [{ type: "text", text: "Done." }];
    const message = { role: "assistant", content, model: "small", provider: "local", stopReason: "stop", timestamp: at, usage };
    const of = { loop_id: `${session}.1`, timestamp: new Date(at).toISOString() };
    const events = [
      { type: "AgentStart", agent_id: "writer", session_id: session, parent_loop_id: null, metadata: null, ...of },
      { type: "MessageEnd", message, ...of },
      { type: "AgentEnd", messages: [message], usage, rejection: null, ...of },
    ];
    return this.send("POST", `/record/${session}`, { events, finish: true });
  }

  delta(session, entry, block, text, kind = "text") {
    return this.send("POST", `/sessions/${encodeURIComponent(session)}/entries/${entry}/delta`, { block, text, kind });
  }
}

/** The time of the first message of a test. */
export const NOON = Date.UTC(2026, 10, 16, 12);

export function user(text, timestamp = NOON) {
  return { role: "user", content: [{ type: "text", text }], timestamp };
}

export function assistant(content, fields = {}) {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { role: "assistant", content: blocks, stop_reason: "end", model: "sonnet-large", provider: "local", timestamp: NOON, ...fields };
}

export function call(id, name, args) {
  return { type: "function_call", id, function_id: name, arguments: args };
}

export function result(id, name, text, fields = {}) {
  return { role: "function_result", function_call_id: id, function_id: name, content: [{ type: "text", text }], timestamp: NOON, ...fields };
}

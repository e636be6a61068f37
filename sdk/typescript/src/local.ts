/** A server of one's own: `Bough.local` starts the program `bough` on a socket, and starts it again when it is needed. */

import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";

import { StartFailed } from "./errors.js";
import { installedProgram } from "./program.js";
import { sleep } from "./time.js";

/** How long the program may take until it answers, and how often it is looked for meanwhile, in milliseconds. */
const START_MAX = 30_000;
const LOOK_EVERY = 20;
/** What the name of a Unix socket may have, in bytes, on every system that has them. */
const SOCKET_NAME_MAX = 100;
/** How much of the program's last words an error repeats, in bytes. */
const LAST_WORDS = 2000;
/**
 * The file that says that somebody starts a server on a loopback address, and for how many milliseconds it counts: who made it
 * may have been killed.
 */
const CLAIM = "local-server.start";
const CLAIM_MAX = 10_000;
/** How the program ends when another server has the socket, and when no client came in time. */
const SERVED_ALREADY = 4;
const WAS_IDLE = 0;
/** Statuses whose answers have no body. */
const WITHOUT_BODY = new Set([204, 304]);

/** Where a server listens. */
type Address = { socketPath: string } | { host: string; port: number };

/** A `fetch` that sends requests to the server of a data directory, and starts it when nobody listens. */
export function localFetch(folder: string, idleExit: number, hasSockets = process.platform !== "win32"): typeof fetch {
  const server = new LocalServer(folder, idleExit, hasSockets);
  return async (input, init) => {
    const address = await server.address();
    try {
      if (address !== undefined) return await send(server, address, String(input), init);
    } catch (error) {
      if (!isRefused(error)) throw error;
    }
    return send(server, await server.ensure(), String(input), init);
  };
}

/**
 * A server on a data directory, shared by all programs that name the same directory, also those of the Python package.
 *
 * It runs in a session of its own, so that it outlives the program that started it, and ends `idleExit` seconds after its last
 * client. Where there are no Unix sockets, it listens on a loopback address; the key in its directory, which only the user can
 * read, stands for a token.
 */
export class LocalServer {
  readonly folder: string;
  readonly agent = new Agent({ keepAlive: true });
  readonly #idleExit: number;
  readonly #socket: string | undefined;
  #starting: Promise<Address> | undefined;

  constructor(folder: string, idleExit: number, hasSockets: boolean) {
    this.folder = resolve(folder);
    this.#idleExit = idleExit;
    this.#socket = hasSockets ? socketFor(this.folder) : undefined;
  }

  /** Starts the server unless it answers, waits until it does, and returns where it listens. */
  ensure(): Promise<Address> {
    this.#starting ??= this.#ensure().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async #ensure(): Promise<Address> {
    const until = Date.now() + START_MAX;
    let program: Program | undefined;
    for (;;) {
      const address = await this.address();
      if (address !== undefined && (await answers(address))) {
        if (program !== undefined && this.#socket === undefined) rmSync(join(this.folder, CLAIM), { force: true });
        return address;
      }
      // Nobody was there yet, or another server has the socket: it answers soon, or is about to end.
      if ((program === undefined || program.endedForAnother) && this.#mayStart()) program = this.#start();
      if (program?.failure !== undefined) throw new StartFailed(`${program.failure}: ${this.#lastWords()}`);
      if (Date.now() > until) throw new StartFailed(`bough does not answer on ${this.folder}: ${this.#lastWords()}`);
      await sleep(LOOK_EVERY);
    }
  }

  /** Where a server of this directory listens, or did last. */
  async address(): Promise<Address | undefined> {
    if (this.#socket !== undefined) return { socketPath: this.#socket };
    for (const name of list(join(this.folder, "processes"))) {
      const text = read(join(this.folder, "processes", name));
      if (text === "") continue;
      const { hostname, port } = new URL(text);
      const address = { host: hostname, port: Number(port) };
      if (await answers(address)) return address;
    }
    return undefined;
  }

  /** What a request over a loopback address has to show. */
  get key(): string | undefined {
    return this.#socket === undefined ? read(join(this.folder, "server.key")) || undefined : undefined;
  }

  /** Whether this program is the one to start the server. A socket has one server; of loopback addresses there are many. */
  #mayStart(): boolean {
    mkdirSync(this.folder, { mode: 0o700, recursive: true });
    if (this.#socket !== undefined) return true;
    const claim = join(this.folder, CLAIM);
    const made = statSync(claim, { throwIfNoEntry: false })?.mtimeMs;
    if (made !== undefined && Date.now() - made > CLAIM_MAX) rmSync(claim, { force: true });
    try {
      closeSync(openSync(claim, "wx"));
      return true;
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      throw error;
    }
  }

  #start(): Program {
    const place = this.#socket === undefined ? ["--listen", "127.0.0.1:0", "--bus", "off"] : ["--socket", this.#socket];
    const words = ["serve", "--data-dir", this.folder, "--idle-exit", String(this.#idleExit), ...place];
    const log = openSync(this.#log, "a");
    try {
      return new Program(spawn(installedProgram() ?? "bough", words, { stdio: ["ignore", log, log], detached: true, windowsHide: true }));
    } finally {
      closeSync(log);
    }
  }

  get #log(): string {
    return join(this.folder, "local-server.log");
  }

  #lastWords(): string {
    return read(this.#log).slice(-LAST_WORDS) || "it said nothing";
  }
}

/** A program that was started, and how it ended. */
class Program {
  /** Why it cannot serve; `undefined` while it may. */
  failure: string | undefined;
  /** Whether it ended because another server was there, or was idle: starting again may help. */
  endedForAnother = false;

  constructor(child: ChildProcess) {
    child.unref();
    child.once("error", (error) => {
      const isMissing = codeOf(error) === "ENOENT";
      this.failure = isMissing ? "there is no program `bough` on the PATH; install it, or set BOUGH to where it is" : error.message;
    });
    child.once("exit", (code) => {
      if (code === SERVED_ALREADY || code === WAS_IDLE) this.endedForAnother = true;
      else this.failure = `bough ended with ${code}`;
    });
  }
}

/** The socket of a data directory: inside of it, or in the temporary folder where its name would be too long. */
export function socketFor(folder: string): string {
  const inside = join(folder, "server.sock");
  if (Buffer.byteLength(inside) <= SOCKET_NAME_MAX) return inside;
  return join(tmpdir(), `bough-${createHash("sha256").update(folder).digest("hex").slice(0, 32)}.sock`);
}

/** Sends a request to an address, as `fetch` would. */
function send(server: LocalServer, address: Address, url: string, init: RequestInit = {}): Promise<Response> {
  const { pathname, search } = new URL(url);
  const headers = { ...(init.headers as { [name: string]: string }) };
  if (server.key !== undefined) headers["authorization"] = `Bearer ${server.key}`;
  const { method = "GET", signal } = init;
  return new Promise((answered, failed) => {
    const options = { ...address, agent: server.agent, path: pathname + search, method, headers, ...(signal && { signal }) };
    const sent = request(options, (incoming) => answered(responseOf(incoming)));
    sent.once("error", failed);
    sent.end(init.body as string | undefined);
  });
}

function responseOf(incoming: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = "" } = incoming;
  const headers = Object.entries(incoming.headersDistinct).map(([name, values]): [string, string] => [name, (values ?? []).join(", ")]);
  if (WITHOUT_BODY.has(status)) incoming.resume();
  const body = WITHOUT_BODY.has(status) ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText, headers });
}

function answers(address: Address): Promise<boolean> {
  return new Promise((answered) => {
    const probe = connect("socketPath" in address ? { path: address.socketPath } : address);
    probe.once("connect", () => answered(true));
    probe.once("error", () => answered(false));
    probe.once("connect", () => probe.destroy());
  });
}

function isRefused(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED"].includes(codeOf(error) ?? "");
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code;
}

/** The text of a file, nothing when it is missing. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    throw error;
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

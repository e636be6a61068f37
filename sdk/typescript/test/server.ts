/** A server on a directory of its own, which can be killed and started again at the same address. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export class Server {
  #address = "127.0.0.1:0";
  #process: ChildProcess | undefined;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "bough-")));
    await server.run();
    return server;
  }

  get url(): string {
    return `http://${this.#address}`;
  }

  /** Runs the program that BOUGH names. */
  async run(): Promise<void> {
    const program = process.env["BOUGH"];
    if (program === undefined) throw new Error("BOUGH must name the program");
    const options = ["serve", "--data-dir", this.#folder, "--listen", this.#address, "--bus", "off"];
    const child = spawn(program, options, { stdio: ["ignore", "pipe", "ignore"] });
    this.#process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const [word, address] = line.trim().split(/\s+/);
      if (word === "HTTP" && address !== undefined) {
        this.#address = address.replace("http://", "");
        return;
      }
    }
    throw new Error("the server did not start");
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Everything that an iterator gives. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The next so many things of an iterator. */
export async function take<T>(items: AsyncIterator<T, void>, count: number): Promise<T[]> {
  const found: T[] = [];
  while (found.length < count) {
    const { done, value } = await items.next();
    if (done === true) throw new Error(`the iterator ended after ${found.length}`);
    found.push(value as T);
  }
  return found;
}

/** The text of a message. */
export function textOf(message: unknown): string {
  const { content } = message as { content: string | { text?: string }[] };
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");
}

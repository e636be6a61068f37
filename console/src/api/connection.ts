// Whether the server answers. Streams say so at once; views without one learn it from requests that do not arrive.

import { Store } from "../ui/store";

export type ConnectionState = "connecting" | "live" | "lost";

export const connection = new Store<ConnectionState>("connecting");

const PROBE_FIRST_MS = 300;
const PROBE_MAX_MS = 5_000;
let isProbing = false;

/** A request did not reach the server: ask until it answers, so that whoever waits for it goes on. */
export function noticeLoss(): void {
  connection.set("lost");
  if (!isProbing) {
    void probe();
  }
}

/** The server answered. */
export function noticeAnswer(): void {
  if (connection.get() === "lost") {
    connection.set("live");
  }
}

async function probe(): Promise<void> {
  isProbing = true;
  for (let pause = PROBE_FIRST_MS; connection.get() === "lost"; pause = Math.min(pause * 2, PROBE_MAX_MS)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (await isAnswering()) {
      noticeAnswer();
    }
  }
  isProbing = false;
}

export async function isAnswering(): Promise<boolean> {
  const answer = await fetch("/healthz").catch(() => undefined);
  return answer?.ok === true;
}

// Requests that the page sends before its program is there. `boot.ts` sends them, and whoever would send the same request
// takes the answer.

interface EarlyRequest {
  answer: Promise<Response>;
  work: AbortController;
}

declare global {
  /** By their addresses. `boot.ts` and the program are two scripts, which have nothing else in common. */
  var earlyRequests: Map<string, EarlyRequest> | undefined;
}

export function askEarly(address: string, accept: string): Promise<Response> {
  const work = new AbortController();
  const answer = fetch(address, { headers: { accept }, credentials: "same-origin", signal: work.signal });
  // Whoever takes it hears of the failure.
  answer.catch(() => undefined);
  globalThis.earlyRequests ??= new Map();
  globalThis.earlyRequests.set(address, { answer, work });
  return answer;
}

/** The answer to a request that was sent early. Each is given out once. */
export function takeEarly(address: string, signal: AbortSignal | null | undefined): Promise<Response> | undefined {
  const early = globalThis.earlyRequests?.get(address);
  if (early === undefined) {
    return undefined;
  }
  globalThis.earlyRequests?.delete(address);
  signal?.addEventListener("abort", () => early.work.abort());
  return early.answer;
}

/** Gives up what nobody took: it was meant for the first view, and grows old. */
export function dropEarly(): void {
  globalThis.earlyRequests?.forEach(({ work }) => work.abort());
  globalThis.earlyRequests?.clear();
}

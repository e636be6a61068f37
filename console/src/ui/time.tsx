// Times that stay true while the page is open.

import { Store } from "./store";
import { useStore } from "./use_store";
import { ago, exactTime } from "./format";

const TICK_MS = 20_000;
const now = new Store(Date.now());
setInterval(() => now.set(Date.now()), TICK_MS);

export function Ago({ at }: { at: number }) {
  const current = useStore(now);
  return (
    <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {ago(at, Math.max(current, at))}
    </time>
  );
}

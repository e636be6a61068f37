/** Stands for `local.ts` where programs cannot be started. */

import { StartFailed } from "./errors.js";

export function localFetch(): never {
  throw new StartFailed("Bough.local needs Node, Deno or Bun; a browser reads from a server: new Bough({ url })");
}

// Runs before anything is painted: chooses the colours, asks the server for what the first view shows, and starts the program
// once the frame of the page, which index.html holds, is on the screen.

import { askEarly } from "./api/early";
import { parseRoute, type SessionFilters } from "./router";
import { listAddress, listFeedAddress, needsIndex } from "./sessions/addresses";
import { firstAddress, sessionFeedAddress } from "./transcript/addresses";
import { savedTheme, showTheme } from "./ui/theme";

const JSON_TYPE = "application/json";
const STREAM_TYPE = "text/event-stream";

showTheme(savedTheme());
const { app, session: sessionViews } = document.currentScript?.dataset ?? {};
const first = parseRoute(location.hash);
if (first.view === "sessions" && !needsIndex(first.filters)) {
  void listOnceFollowed(first.filters);
} else if (first.view === "session" && first.entry === undefined) {
  void askEarly(sessionFeedAddress(first.session), STREAM_TYPE);
  void askEarly(firstAddress(first.session), JSON_TYPE);
}
if ("session" in first && sessionViews !== undefined) {
  preload(sessionViews);
}
afterFirstFrame(() => void import(app ?? ""));

/** What is listed before the stream is open may be old by then. */
async function listOnceFollowed(filters: SessionFilters): Promise<void> {
  const stream = await askEarly(listFeedAddress(), STREAM_TYPE).catch(() => undefined);
  if (stream?.ok === true) {
    void askEarly(listAddress(filters), JSON_TYPE);
  }
}

function preload(href: string): void {
  document.head.append(Object.assign(document.createElement("link"), { rel: "modulepreload", href }));
}

/** Pages that nobody sees have no frames. */
function afterFirstFrame(run: () => void): void {
  if (document.hidden) {
    run();
  } else {
    requestAnimationFrame(() => setTimeout(run));
  }
}

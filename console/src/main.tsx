import { render } from "preact";
import { App } from "./app";
import "./core";
import { colours, serverViews, sessionViews } from "./parts";
import { route, startRouter } from "./router";
import { startShortcuts } from "./ui/keys";
import { startTheme } from "./ui/theme";
import "./style/all.css";

sessionViews.load = () => import("./session_views");
serverViews.load = () => import("./server_views");
colours.load = () => import("./transcript/colours");

if ("session" in route.get()) {
  // The view would ask for it too, but only after it was painted.
  void sessionViews.ask().catch(() => undefined);
}

startTheme();
startRouter();
startShortcuts();
const place = document.getElementById("app");
if (place !== null) {
  render(<App />, place);
}

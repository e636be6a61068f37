import { render } from "preact";
import { App } from "./app";
import { startRouter } from "./router";
import { startShortcuts } from "./ui/keys";
import { startTheme } from "./ui/theme";
import "./style/all.css";

startTheme();
startRouter();
startShortcuts();
const place = document.getElementById("app");
if (place !== null) {
  render(<App />, place);
}

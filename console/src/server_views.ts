// The views of the whole server, which are loaded when the first of them is shown.

import "./core";

export { HealthView } from "./health/view";
export { TrashView } from "./trash/view";
export { UsageView } from "./usage/view";

// The views of one session, which are loaded when the first of them is shown.

import "./core";

export { LoopsView } from "./loops/view";
export { TranscriptView } from "./transcript/view";
export { CompareView } from "./tree/compare";
export { TreeView } from "./tree/view";

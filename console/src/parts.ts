// Parts of the program that are loaded when they are needed. `main.tsx` says how: a file is named by its digest, so no file
// can name one that names it.

import { LazyModule } from "./ui/lazy";

export const sessionViews = new LazyModule<typeof import("./session_views")>();
export const serverViews = new LazyModule<typeof import("./server_views")>();
export const colours = new LazyModule<typeof import("./transcript/colours")>();

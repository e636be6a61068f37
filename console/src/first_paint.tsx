// What index.html holds, so that there is something to see before the program runs. `build.mjs` makes HTML of it.

import { renderToString } from "preact-render-to-string";
import { TopBar } from "./top_bar";
import { Loading } from "./ui/states";

export const html: string = renderToString(
  <div class="shell">
    <a class="skip" href="#main">
      Skip to the content
    </a>
    <TopBar view={undefined} theme="system" />
    <div role="status" />
    <main id="main" class="main">
      <h1 class="hidden">Bough</h1>
      <Loading />
    </main>
  </div>,
);

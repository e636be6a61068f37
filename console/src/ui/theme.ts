// Light or dark: as the system says, unless the reader chose.

import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

const KEY = "bough-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

export const theme = new Store<Theme>("system");

export function startTheme(): void {
  const saved = ORDER.find((name) => name === localStorage.getItem(KEY));
  choose(saved ?? "system");
}

export function nextTheme(): void {
  const at = ORDER.indexOf(theme.get());
  choose(ORDER[(at + 1) % ORDER.length] ?? "system");
}

function choose(name: Theme): void {
  theme.set(name);
  if (name === "system") {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(KEY, name);
    document.documentElement.dataset["theme"] = name;
  }
}

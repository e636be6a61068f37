// Light or dark: as the system says, unless the reader chose.

import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

const KEY = "bough-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

export const theme = new Store<Theme>("system");

/** The page itself has shown it already. */
export function startTheme(): void {
  theme.set(savedTheme());
}

export function savedTheme(): Theme {
  return ORDER.find((name) => name === localStorage.getItem(KEY)) ?? "system";
}

export function showTheme(name: Theme): void {
  if (name === "system") {
    delete document.documentElement.dataset["theme"];
  } else {
    document.documentElement.dataset["theme"] = name;
  }
}

export function nextTheme(): void {
  const at = ORDER.indexOf(theme.get());
  choose(ORDER[(at + 1) % ORDER.length] ?? "system");
}

function choose(name: Theme): void {
  theme.set(name);
  showTheme(name);
  if (name === "system") {
    localStorage.removeItem(KEY);
  } else {
    localStorage.setItem(KEY, name);
  }
}

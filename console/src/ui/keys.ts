// Keyboard shortcuts: one table for what they do and for the list that shows them.

import { useLayoutEffect } from "preact/hooks";

export interface ListedKey {
  key: string;
  about: string;
}

export interface Shortcut extends ListedKey {
  act: () => void;
}

const tables = new Set<Shortcut[]>();
const lists = new Set<ListedKey[]>();

/** The shortcuts of a view, while it is shown. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useLayoutEffect(() => {
    tables.add(shortcuts);
    return () => {
      tables.delete(shortcuts);
    };
  });
}

/** Keys that a part of a view takes itself while it has the focus, for the list. */
export function useKeyList(keys: ListedKey[]): void {
  useLayoutEffect(() => {
    lists.add(keys);
    return () => {
      lists.delete(keys);
    };
  });
}

/** What can be pressed now; keys that do the same stand together. */
export function listedKeys(): { keys: string[]; about: string }[] {
  const byAbout = new Map<string, string[]>();
  for (const { key, about } of [...activeShortcuts(), ...[...lists].flat()]) {
    byAbout.set(about, [...(byAbout.get(about) ?? []), key]);
  }
  return [...byAbout].map(([about, keys]) => ({ about, keys }));
}

function activeShortcuts(): Shortcut[] {
  return [...tables].flat();
}

export function startShortcuts(): void {
  document.addEventListener("keydown", (event) => {
    const isTaken = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
    if (isTaken || isTyping(event.target) || document.querySelector("dialog[open]") !== null) {
      return;
    }
    const found = activeShortcuts().findLast((shortcut) => shortcut.key === event.key);
    if (found !== undefined) {
      event.preventDefault();
      found.act();
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

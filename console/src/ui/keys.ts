// Keyboard shortcuts: one table for what they do and for the list that shows them.

import { useLayoutEffect } from "preact/hooks";

export interface Shortcut {
  key: string;
  about: string;
  act: () => void;
}

const tables = new Set<Shortcut[]>();

/** The shortcuts of a view, while it is shown. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useLayoutEffect(() => {
    tables.add(shortcuts);
    return () => {
      tables.delete(shortcuts);
    };
  });
}

/** What can be pressed now. */
export function activeShortcuts(): Shortcut[] {
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

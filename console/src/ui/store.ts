// State that views show: a value, and whoever wants to know when it changes.

import { useEffect, useReducer } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (value === this.value) {
      return;
    }
    this.value = value;
    for (const listener of [...this.listeners]) {
      listener();
    }
  }

  update(change: (value: T) => T): void {
    this.set(change(this.value));
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The store's value; the component is rendered again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const value = store.get();
  useEffect(() => {
    const stop = store.subscribe(() => render(undefined));
    // Effects run after painting: the store may have changed since this was rendered.
    if (store.get() !== value) {
      render(undefined);
    }
    return stop;
  }, [store]);
  return value;
}

// A store in a component.

import { useEffect, useReducer } from "preact/hooks";
import type { Store } from "./store";

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

// Parts of the program that are loaded when they are needed.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { EmptyState, Loading } from "./states";

/** A module that is asked for once. */
export class LazyModule<T> {
  private loaded: T | undefined;
  private asked: Promise<T> | undefined;

  /** How it is loaded; said once, before anybody asks. */
  load: () => Promise<T> = () => Promise.reject(new Error("this part of the program has no place"));

  /** What is in it, if it is there. */
  get(): T | undefined {
    return this.loaded;
  }

  ask(): Promise<T> {
    this.asked ??= this.load().then(
      (module) => (this.loaded = module),
      (error: unknown) => {
        // The next view that needs it asks again.
        this.asked = undefined;
        throw error;
      },
    );
    return this.asked;
  }
}

/** The module of a component, once it is there; `undefined` before that and if it does not come. */
export function useLazy<T>(module: LazyModule<T>): { module: T | undefined; hasFailed: boolean } {
  const [hasFailed, setFailed] = useState(false);
  const [, setLoaded] = useState(module.get());
  useEffect(() => {
    let isShown = true;
    module.ask().then(
      (loaded) => isShown && setLoaded(() => loaded),
      () => isShown && setFailed(true),
    );
    return () => {
      isShown = false;
    };
  }, [module]);
  return { module: module.get(), hasFailed };
}

/** A view of a module. */
export function LazyView<T>({ from, children }: { from: LazyModule<T>; children: (module: T) => ComponentChildren }) {
  const { module, hasFailed } = useLazy(from);
  if (module !== undefined) {
    return <>{children(module)}</>;
  }
  return hasFailed ? <NotLoaded /> : <Loading />;
}

/** A server that was replaced by a newer one does not have the files of this page any more. */
function NotLoaded() {
  return (
    <EmptyState title="This view could not be loaded" isView>
      <p>The server does not answer, or it is newer than this page.</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        Load the page again
      </button>
    </EmptyState>
  );
}

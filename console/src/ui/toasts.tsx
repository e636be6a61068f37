// Short notices at the foot of the page: what was done, and how to undo it.

import { Store } from "./store";
import { useStore } from "./use_store";
import { Icon } from "./icons";
import { WithCode } from "./with_code";

interface Toast {
  number: number;
  text: string;
  isError: boolean;
  undo: (() => void) | undefined;
}

const SHOWN_MS = 8_000;
const SHOWN_MAX = 3;

const toasts = new Store<Toast[]>([]);
let nextNumber = 1;

export function notify(text: string, undo?: () => void): void {
  show({ number: nextNumber++, text, isError: false, undo });
}

export function notifyError(text: string): void {
  show({ number: nextNumber++, text, isError: true, undo: undefined });
}

/** Undoes the newest thing that can be undone. */
export function undoLast(): void {
  const last = toasts.get().findLast((toast) => toast.undo !== undefined);
  if (last !== undefined) {
    take(last);
  }
}

function show(toast: Toast): void {
  toasts.update((shown) => [...shown.slice(1 - SHOWN_MAX), toast]);
  window.setTimeout(() => dismiss(toast.number), SHOWN_MS);
}

function dismiss(number: number): void {
  toasts.update((shown) => shown.filter((toast) => toast.number !== number));
}

function take(toast: Toast): void {
  dismiss(toast.number);
  toast.undo?.();
}

export function Toasts() {
  const shown = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.number} class={toast.isError ? "toast toast-error" : "toast"}>
          <span class="toast-text">
            <WithCode text={toast.text} />
          </span>
          {toast.undo !== undefined && (
            <button type="button" class="button button-small" onClick={() => take(toast)}>
              Undo
            </button>
          )}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(toast.number)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}

// Short notices at the foot of the page: what was done, and how to undo it.

import { Store } from "./store";
import { useStore } from "./use_store";
import { Icon } from "./icons";
import { WithCode } from "./with_code";

interface ToastLink {
  href: string;
  text: string;
}

interface Toast {
  number: number;
  text: string;
  isError: boolean;
  undo: (() => void) | undefined;
  link: ToastLink | undefined;
}

const SHOWN_MS = 8_000;
/** Long enough to read it and to reach the button. */
const SHOWN_UNDO_MS = 20_000;
const SHOWN_MAX = 3;

const toasts = new Store<Toast[]>([]);
const timers = new Map<number, number>();
let nextNumber = 1;
let isHeld = false;

export function notify(text: string, undo?: () => void, link?: ToastLink): void {
  show({ number: nextNumber++, text, isError: false, undo, link });
}

export function notifyError(text: string): void {
  show({ number: nextNumber++, text, isError: true, undo: undefined, link: undefined });
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
  if (!isHeld) {
    startTimer(toast);
  }
}

function startTimer({ number, undo }: Toast): void {
  window.clearTimeout(timers.get(number));
  timers.set(number, window.setTimeout(() => dismiss(number), undo === undefined ? SHOWN_MS : SHOWN_UNDO_MS));
}

/** Nothing goes away under the pointer, or while the keyboard is in it. */
function hold(): void {
  isHeld = true;
  timers.forEach((timer) => window.clearTimeout(timer));
}

function release(): void {
  isHeld = false;
  toasts.get().forEach(startTimer);
}

function dismiss(number: number): void {
  timers.delete(number);
  toasts.update((shown) => shown.filter((toast) => toast.number !== number));
  if (toasts.get().length === 0) {
    // What the pointer was on is gone, and does not say that it left.
    isHeld = false;
  }
}

function take(toast: Toast): void {
  dismiss(toast.number);
  toast.undo?.();
}

export function Toasts() {
  const shown = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite" onPointerEnter={hold} onPointerLeave={release} onFocusIn={hold} onFocusOut={release}>
      {shown.map((toast) => (
        <div key={toast.number} class={toast.isError ? "toast toast-error" : "toast"}>
          <span class="toast-text">
            <WithCode text={toast.text} />
          </span>
          {toast.link !== undefined && (
            <a class="button button-small" href={toast.link.href} onClick={() => dismiss(toast.number)}>
              {toast.link.text}
            </a>
          )}
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

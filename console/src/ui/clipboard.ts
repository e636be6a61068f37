import { notify, notifyError } from "./toasts";

/** Copies a text and says so. */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`Copied ${what}.`);
  } catch {
    notifyError("The browser did not allow copying: open this page over https or on localhost.");
  }
}

// What can be done with a session, with a way back.

import { describe, sendJson, sessionPath } from "../api/client";
import { firstLine } from "../ui/format";
import { notify, notifyError } from "../ui/toasts";

export async function rename(session: string, title: string, previous: string): Promise<void> {
  await attempt(async () => {
    await setTitle(session, title);
    notify("Renamed.", () => void attempt(() => setTitle(session, previous)));
  });
}

export async function setArchived(session: string, isArchived: boolean, title: string): Promise<boolean> {
  return attempt(async () => {
    await sendArchived(session, isArchived);
    const done = isArchived ? "Archived" : "Took back";
    notify(`${done} “${shorten(title)}”.`, () => void attempt(() => sendArchived(session, !isArchived)));
  });
}

export async function remove(session: string, title: string): Promise<boolean> {
  return attempt(async () => {
    await sendJson("DELETE", sessionPath(session));
    notify(`Deleted “${shorten(title)}”.`, () => void restore(session));
  });
}

/** Brings a deleted session back. */
export async function restore(session: string): Promise<boolean> {
  return attempt(() => sendJson("POST", `/v1/trash/${encodeURIComponent(session)}/undelete`, {}));
}

async function setTitle(session: string, title: string): Promise<void> {
  await sendJson("PATCH", sessionPath(session), { title });
}

async function sendArchived(session: string, isArchived: boolean): Promise<void> {
  await sendJson(isArchived ? "PUT" : "DELETE", sessionPath(session, "archive"));
}

/** Does something and says so if it fails. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    notifyError(describe(error));
    return false;
  }
}

function shorten(title: string): string {
  const line = firstLine(title);
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}

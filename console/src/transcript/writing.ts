// What a reader can write: a reply, an edited message on a branch of its own, another active path, a fork.

import { ApiError, describe, getJson, sendJson, sessionPath } from "../api/client";
import type { StoredEntry } from "../api/types";
import { notify, notifyError } from "../ui/toasts";
import { editedMessage } from "./edited";

function userMessage(text: string) {
  return { role: "user", content: [{ type: "text", text }], timestamp: Date.now() };
}

/** Adds a message at the end of the active path, unless somebody else did meanwhile. */
export async function reply(session: string, text: string, leaf: string | undefined): Promise<boolean> {
  return told(() => sendJson("POST", sessionPath(session, "entries"), { message: userMessage(text), expected_leaf: leaf ?? "" }));
}

/** Says something else in the place of a message: a branch beside it, which becomes the active path. */
export async function edit(session: string, entry: string, text: string): Promise<boolean> {
  return told(async () => {
    const { entry: stored } = await getJson<{ entry: StoredEntry }>(sessionPath(session, "entries", entry));
    const message = stored.message === undefined ? userMessage(text) : editedMessage(stored.message, text, Date.now());
    await sendJson("POST", sessionPath(session, "entries"), { message, parent_id: stored.parent_id });
  });
}

/** Makes the active path end at an entry, with a way back to where it ended before. */
export async function setLeaf(session: string, entry: string, before: string | undefined): Promise<boolean> {
  return told(async () => {
    await moveLeaf(session, entry);
    notify("The active path ends here now.", () => void told(() => moveLeaf(session, before)));
  });
}

async function moveLeaf(session: string, entry: string | undefined): Promise<void> {
  const path = sessionPath(session, "leaf");
  await (entry === undefined ? sendJson("DELETE", path) : sendJson("PUT", path, { entry_id: entry }));
}

/** Copies the path up to an entry into a new session, and says its id. */
export async function fork(session: string, entry: string): Promise<string | undefined> {
  let made: string | undefined;
  await told(async () => {
    made = (await sendJson<{ session_id: string }>("POST", sessionPath(session, "fork"), { entry_id: entry })).session_id;
  });
  return made;
}

async function told(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    const isLate = error instanceof ApiError && error.code === "session/leaf_conflict";
    notifyError(isLate ? "Somebody wrote to this session meanwhile. Read it, then send again." : describe(error));
    return false;
  }
}

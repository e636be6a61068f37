/** The messages of a chat, from the entries of a session. */

import type { UIMessage } from "ai";

import type { Session } from "../session.js";
import type { Entry, Json } from "../types.js";
import { isText, type Part } from "./parts.js";
import { DETAILS, type Details } from "./recording.js";

/** How many entries are asked for at once. */
const PAGE = 500;

/** A message, and the entries that it is stored in. */
export interface StoredMessage {
  message: UIMessage;
  entries: Entry[];
}

/** The messages of the active path. A reply that is several entries is one message. */
export async function readPath(session: Session): Promise<StoredMessage[]> {
  const path: StoredMessage[] = [];
  for await (const entry of session.messages({ format: "ai-sdk", includeCustom: true, pageSize: PAGE })) {
    const last = path.at(-1);
    if (entry.custom !== undefined) {
      if (last !== undefined && entry.custom.custom_type === DETAILS) addDetails(last, entry);
      continue;
    }
    const message = messageOf(entry);
    if (last !== undefined && message.role === "assistant" && last.message.role === "assistant" && last.message.id === message.id) {
      last.message.parts.push(...message.parts);
      last.entries.push(entry);
    } else {
      path.push({ message, entries: [entry] });
    }
  }
  return path;
}

function addDetails(stored: StoredMessage, entry: Entry): void {
  const { id, metadata, parts = {} } = entry.custom?.data as Details;
  stored.entries.push(entry);
  if (id !== stored.message.id) return;
  if (metadata !== undefined) stored.message.metadata = metadata;
  for (const [index, members] of Object.entries(parts)) {
    const part = stored.message.parts[Number(index)];
    if (isText(part)) Object.assign(part, members);
  }
}

/** The message of an entry, without what Bough says of it in its metadata. */
function messageOf(entry: Entry): UIMessage {
  const { id, role, parts, metadata } = entry.message as { id?: string; role: UIMessage["role"]; parts: Part[]; metadata?: Json };
  const { bough: _ours, ...theirs } = metadata ?? {};
  return { id: id ?? entry.entry_id, role, parts: [...parts], ...(Object.keys(theirs).length > 0 && { metadata: theirs }) };
}

// What an entry says, in a line.

import type { CustomPayload, Message } from "../api/types";
import { firstLine } from "../ui/format";

const PREVIEW_CHARS = 160;

export function previewOf({ message, custom }: { message?: Message; custom?: CustomPayload }): string {
  if (message === undefined) {
    const { label, summary } = dataOf(custom);
    const about = label ?? summary;
    const name = (custom?.custom_type ?? "entry").replace(/^bough\./, "").replaceAll("_", " ");
    return (typeof about === "string" ? `${name}: ${firstLine(about)}` : name).slice(0, PREVIEW_CHARS);
  }
  const content = Array.isArray(message.content) ? message.content : [];
  const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" ");
  const calls = content.flatMap((block) => (block.type === "function_call" ? [block.function_id] : []));
  const called = calls.length === 0 ? "" : `→ ${calls.join(", ")}`;
  const said = firstLine(text) || called || message.function_id || message.role;
  // The marks of Markdown for strong words and code say nothing in a line of plain text.
  return said.replace(/\*\*|`/g, "").slice(0, PREVIEW_CHARS);
}

/** The members of what a bookkeeping entry keeps. */
export function dataOf(custom: CustomPayload | undefined): Record<string, unknown> {
  const data = custom?.data;
  return typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
}

// A message that says something else.

import type { ContentBlock, ImageBlock, Message } from "../api/types";

/** What a reader edits: the texts of a message as one. */
export function editableText(content: ContentBlock[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
}

export function picturesIn(content: ContentBlock[]): ImageBlock[] {
  return content.filter((block) => block.type === "image");
}

/** Calls belong to their results, which another branch does not have. */
export function canEdit(message: Message | undefined): boolean {
  const isReply = message?.role === "assistant" && !message.content.some((block) => block.type === "function_call");
  return message?.role === "user" || isReply;
}

/** The blocks with one text in the place of their first one; what is not text stays. */
export function withText(content: ContentBlock[], text: string): ContentBlock[] {
  const first = content.findIndex((block) => block.type === "text");
  const others = content.filter((block, at) => block.type !== "text" || at === first);
  const edited: ContentBlock = { type: "text", text };
  return first < 0 ? [...others, edited] : others.map((block) => (block.type === "text" ? edited : block));
}

/** The message to store. What the old one cost is not spent again, so it is left out. */
export function editedMessage(stored: Message, text: string, timestamp: number): Message {
  const { role, model, provider } = stored;
  const message: Message = { role, content: withText(stored.content, text), timestamp };
  return role === "assistant" ? { ...message, stop_reason: "end", model: model ?? "", provider: provider ?? "" } : message;
}

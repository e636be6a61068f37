// Messages as Markdown, for the clipboard.

import type { ContentBlock, Message, PathItem } from "../api/types";

export function pathAsMarkdown(title: string, items: PathItem[]): string {
  const parts = items.flatMap((item) => (item.message === undefined ? [] : [messageAsMarkdown(item.message)]));
  return [`# ${title}`, ...parts].join("\n\n") + "\n";
}

export function messageAsMarkdown(message: Message): string {
  // What a tool prints is not Markdown.
  const asMarkdown = message.role === "function_result" ? resultAsMarkdown : blockAsMarkdown;
  const body = message.content.map(asMarkdown).filter((text) => text !== "");
  if (message.error_message !== undefined) {
    body.push(`**Error:** ${message.error_message}`);
  }
  return [`## ${speaker(message)}`, ...body].join("\n\n");
}

/** Who speaks, in a word or two. */
export function speaker(message: Message): string {
  switch (message.role) {
    case "user":
      return "User";
    case "assistant":
      return "Assistant";
    case "function_result":
      return `Result of ${message.function_id ?? "a call"}`;
    case "custom":
      return message.custom_type ?? "Notice";
  }
}

function blockAsMarkdown(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "thinking":
      return block.text.replace(/^/gm, "> ");
    case "image":
      return `(picture, ${block.mime})`;
    case "function_call":
      return `**${block.function_id}**\n\n${fenced(JSON.stringify(block.arguments, null, 2), "json")}`;
    case "function_result":
      return block.content.map(resultAsMarkdown).join("\n\n");
  }
}

function resultAsMarkdown(block: ContentBlock): string {
  return block.type === "text" && block.text !== "" ? fenced(block.text.replace(/\n$/, ""), "") : blockAsMarkdown(block);
}

/** A fence that is longer than any in the text. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

// Messages as the feed of a session tells them.

import type { ContentBlock, Message } from "../api/types";

export interface LiveMessage {
  message: Message;
  revision: number;
  /** Whether more of it may come. */
  isStreaming: boolean;
}

export interface Delta {
  block: number;
  kind?: "text" | "thinking" | "tool_arguments";
  text: string;
  revision: number;
  /** Where it begins a call. */
  function_call_id?: string;
  function_id?: string;
}

/** The end of a message: the members that it has since, beside these. */
export interface Finish extends Partial<Message> {
  entry_id?: string;
  revision: number;
  cost?: number;
  aborted?: boolean;
}

/** The message with a piece of text added to one of its blocks; the number of blocks that there are begins a new one. */
export function withDelta(live: LiveMessage, delta: Delta): LiveMessage {
  if (delta.revision <= live.revision) {
    return live;
  }
  const content = [...live.message.content];
  content[delta.block] = grown(content[delta.block], delta);
  return { message: { ...live.message, content }, revision: delta.revision, isStreaming: true };
}

function grown(block: ContentBlock | undefined, delta: Delta): ContentBlock {
  if (block === undefined) {
    return begun(delta);
  }
  if (block.type === "text" || block.type === "thinking") {
    return { ...block, text: block.text + delta.text };
  }
  if (block.type === "function_call") {
    const arrived = typeof block.arguments === "string" ? block.arguments : "";
    return { ...block, arguments: arrived + delta.text };
  }
  return block;
}

function begun({ kind, text, function_call_id: id = "", function_id = "" }: Delta): ContentBlock {
  switch (kind) {
    case "thinking":
      return { type: "thinking", text };
    case "tool_arguments":
      return { type: "function_call", id, function_id, arguments: text };
    default:
      return { type: "text", text };
  }
}

export function withFinish(live: LiveMessage, finish: Finish): LiveMessage {
  if (finish.revision < live.revision) {
    return live;
  }
  const { entry_id: _entry, revision, cost: _cost, aborted: _aborted, ...said } = finish;
  return { message: { ...live.message, ...said }, revision, isStreaming: false };
}

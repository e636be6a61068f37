/** The parts of a `UIMessage`, and the chunks that a stream tells them with. */

import { getToolName, isToolUIPart, type UIMessage, type UIMessageChunk } from "ai";

import { canonical } from "../canonical.js";

export type Part = UIMessage["parts"][number];
export type TextPart = Extract<Part, { type: "text" | "reasoning" }>;

/** States of a tool part that do not change any more while a reply is written. */
const SETTLED: ReadonlySet<string> = new Set(["output-available", "output-error", "output-denied", "approval-requested"]);

/** Whether a part grows while it is written. */
export function isText(part: Part | undefined): part is TextPart {
  return part?.type === "text" || part?.type === "reasoning";
}

export function isTool(part: Part | undefined): boolean {
  return part !== undefined && isToolUIPart(part);
}

/** Whether a part is as it will be: a tool may still run. */
export function isSettled(part: Part): boolean {
  return !isToolUIPart(part) || (SETTLED.has(part.state) && !("preliminary" in part && part.preliminary === true));
}

/** Whether two messages say the same. Whether a text is complete says the stream, not the message. */
export function saysTheSame(one: UIMessage, other: UIMessage): boolean {
  return one.role === other.role && sameParts(one.parts, other.parts);
}

export function sameParts(some: readonly Part[], others: readonly Part[]): boolean {
  const said = (parts: readonly Part[]): unknown[] => parts.map((part) => (isText(part) ? { type: part.type, text: part.text } : part));
  return canonical(said(some)) === canonical(said(others));
}

/** The chunks of a part that is complete, a text excepted: texts have ids, and grow. */
export function chunksOf(part: Part): UIMessageChunk[] {
  if (part.type === "step-start") return [{ type: "start-step" }];
  if (isToolUIPart(part)) return toolChunks(part);
  // The other parts are sent as they are.
  return [part as UIMessageChunk];
}

function toolChunks(part: Extract<Part, { toolCallId: string }>): UIMessageChunk[] {
  const { toolCallId } = part;
  const dynamic = part.type === "dynamic-tool";
  const input: UIMessageChunk = { type: "tool-input-available", toolCallId, toolName: getToolName(part), input: part.input, dynamic };
  switch (part.state) {
    case "output-available":
      return [input, { type: "tool-output-available", toolCallId, output: part.output, dynamic }];
    case "output-error":
      return [input, { type: "tool-output-error", toolCallId, errorText: part.errorText, dynamic }];
    case "output-denied":
      return [input, { type: "tool-output-denied", toolCallId }];
    case "approval-requested":
      return [input, { type: "tool-approval-request", toolCallId, approvalId: part.approval.id }];
    default:
      return [input];
  }
}

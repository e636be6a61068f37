/**
 * Items of the OpenAI Agents SDK in the form of the Responses API, and back.
 *
 * The SDK for TypeScript has names of its own for three kinds of items. A converted item that would not come back equal is
 * kept beside what a person reads.
 */

import type { AgentInputItem } from "@openai/agents-core";

import type { Json } from "./types.js";

/** Where an item is kept that the form of the Responses API does not say exactly. */
const ORIGINAL = "openai_agents_item";
/** How JSON says bytes. */
const BYTES = "openai_agents_bytes";

/** The item as the Responses API writes it. */
export function fromItem(item: AgentInputItem): Json {
  const plain = JSON.parse(JSON.stringify(item, encodeBytes)) as Json;
  const converted = convert(plain);
  return JSON.stringify(restore(converted)) === JSON.stringify(plain) ? converted : { ...converted, [ORIGINAL]: plain };
}

/** The item that `fromItem` was given. */
export function toItem(stored: Json): AgentInputItem {
  const item = (stored[ORIGINAL] as Json | undefined) ?? restore(stored);
  return decodeBytes(item) as AgentInputItem;
}

function convert(item: Json): Json {
  switch (item["type"]) {
    case "function_call":
      return renamed(item, { callId: "call_id" });
    case "function_call_result": {
      const { output } = item;
      const text = isText(output) ? output.text : output;
      return { ...renamed(item, { callId: "call_id" }), type: "function_call_output", output: text };
    }
    case "reasoning":
      return {
        ...renamed(item, { content: "summary", rawContent: "content" }),
        summary: partsAs(item["content"], "summary_text"),
      };
    default:
      return item;
  }
}

function restore(stored: Json): Json {
  switch (stored["type"]) {
    case "function_call":
      return renamed(stored, { call_id: "callId" });
    case "function_call_output": {
      const { output } = stored;
      const said = typeof output === "string" ? { type: "text", text: output } : output;
      return { ...renamed(stored, { call_id: "callId" }), type: "function_call_result", output: said };
    }
    case "reasoning": {
      if (!("summary" in stored)) return stored;
      return { ...renamed(stored, { content: "rawContent", summary: "content" }), content: partsAs(stored["summary"], "input_text") };
    }
    default:
      return stored;
  }
}

/** An object with other names for some of its members, in the same order. */
function renamed(members: Json, names: { [name: string]: string }): Json {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [names[name] ?? name, value]));
}

function partsAs(parts: unknown, type: string): unknown {
  return Array.isArray(parts) ? parts.map((part: Json) => ({ ...part, type })) : parts;
}

/** Whether an output is nothing but a text. */
function isText(output: unknown): output is { text: string } {
  const { type, text, ...rest } = (output ?? {}) as Json;
  return type === "text" && typeof text === "string" && Object.keys(rest).length === 0;
}

function encodeBytes(_name: string, value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return value;
  return { [BYTES]: btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")) };
}

function decodeBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decodeBytes);
  if (typeof value !== "object" || value === null) return value;
  const bytes = (value as Json)[BYTES];
  if (typeof bytes === "string") return Uint8Array.from(atob(bytes), (char) => char.charCodeAt(0));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, decodeBytes(member)]));
}

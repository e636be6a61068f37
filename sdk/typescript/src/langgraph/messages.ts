/**
 * LangChain's messages as messages of Bough, and back.
 *
 * What a person reads is in the members that Bough knows; what only LangChain knows is under `langchain`, without repeating the
 * text. A message that would not come back equal is kept as the framework's serializer writes it, beside its text.
 */

import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

import { canonical } from "../canonical.js";
import type { Json } from "../types.js";
import { fromOpaque, isPlainJson, opaque, type Opaque, wellFormed } from "./values.js";

type MessageClass = new (fields: never) => BaseMessage;

const CLASSES: { [kind: string]: MessageClass } = {
  human: HumanMessage,
  ai: AIMessage,
  AIMessageChunk,
  system: SystemMessage,
  tool: ToolMessage,
};
const KINDS: ReadonlyMap<unknown, string> = new Map(Object.entries(CLASSES).map(([kind, of]) => [of, kind]));
const ROLES: { [kind: string]: string } = {
  human: "user",
  ai: "assistant",
  AIMessageChunk: "assistant",
  system: "system",
  tool: "function_result",
};
/** Why LangChain's models stopped, in the words of Bough. */
const STOP_REASONS: { [reason: string]: string } = {
  tool_calls: "function_call",
  tool_use: "function_call",
  length: "length",
  max_tokens: "length",
};
/** Members that a message may have without having been made with them. */
const FIELDS = ["content", "id", "name", "tool_calls", "invalid_tool_calls", "usage_metadata", "additional_kwargs", "response_metadata"];
/** Members that say again what others say. */
const REPEATED = new Set(["type", "contentBlocks", "content_blocks"]);

/** A message as Bough keeps it. */
export interface StoredMessage extends Json {
  content: Json[];
  langchain: Json;
}

/** A call of a tool. */
interface ToolCall {
  name: string;
  args: unknown;
  id: string;
  type?: string;
}

/** Whether a value is a message that a person would read. */
export function isReadable(value: unknown): value is BaseMessage {
  return typeof value === "object" && value !== null && KINDS.has(value.constructor);
}

/** The message as Bough keeps it. */
export async function toEntry(message: BaseMessage, serde: SerializerProtocol): Promise<StoredMessage> {
  const readable = { ...header(message), content: blocks(message) };
  const members = membersOf(message);
  if (isPlainJson(members)) {
    const candidate = { ...readable, langchain: members };
    const back = await fromEntry(candidate, serde);
    if (canonical(membersOf(back, true)) === canonical(membersOf(message, true))) return candidate;
  }
  return { ...readable, langchain: { ...(await opaque(message, serde)) } };
}

/** The message that `toEntry` was given; `id` replaces its id. */
export async function fromEntry(entry: StoredMessage, serde: SerializerProtocol, id?: string | null): Promise<BaseMessage> {
  const message = await decode(entry, serde);
  if (id !== undefined && id !== (message.id ?? null)) message._updateId(id ?? undefined);
  return message;
}

/** The id that a message was stored with. */
export async function storedId(entry: StoredMessage, serde: SerializerProtocol): Promise<string | null> {
  if (isOpaque(entry.langchain)) return (await decode(entry, serde)).id ?? null;
  return (entry.langchain["id"] as string | undefined) ?? null;
}

/** What a stored message says, without its id: equal for messages that say the same. */
export function saidBy(entry: StoredMessage): string {
  const { id, ids, ...members } = entry.langchain;
  const calls = entry.content.map((block) => [block["id"], block["function_id"], block["arguments"]]);
  return canonical([members, textOf(entry.content), calls, entry["function_call_id"]]);
}

async function decode(entry: StoredMessage, serde: SerializerProtocol): Promise<BaseMessage> {
  if (isOpaque(entry.langchain)) return (await fromOpaque(entry.langchain, serde)) as BaseMessage;
  const { ids, type, ...members } = structuredClone(entry.langchain);
  const MessageOf = CLASSES[type as string];
  if (MessageOf === undefined) throw new Error(`a stored message is of the unknown kind ${JSON.stringify(type)}`);
  members["content"] ??= textOf(entry.content);
  const calls = entry.content.filter((block) => block["type"] === "function_call");
  if (calls.length > 0) {
    members["tool_calls"] ??= calls.map((call) => ({
      name: call["function_id"],
      args: structuredClone(call["arguments"]),
      id: call["id"],
      type: "tool_call",
    }));
  }
  if (type === "tool") members["tool_call_id"] = entry["function_call_id"];
  return new MessageOf(members as never);
}

function isOpaque(members: Json): members is Json & Opaque {
  return "b" in members;
}

/** What the readable members do not say, or with `all` everything. */
function membersOf(message: BaseMessage, all = false): Json {
  const given = message.lc_kwargs as Json;
  const own = message as unknown as Json;
  const members: Json = { type: KINDS.get(message.constructor) };
  for (const name of new Set([...Object.keys(given), ...FIELDS])) {
    const value = name in message ? own[name] : given[name];
    if (!REPEATED.has(name) && !isEmpty(value)) members[name] = value;
  }
  if (members["status"] === "success") delete members["status"];
  if (all) return members;
  if (typeof message.content === "string") delete members["content"];
  else members["content"] = message.content;
  if (callsOf(message).every((call) => call.type === "tool_call" && Object.keys(call).length === 4)) delete members["tool_calls"];
  delete members["tool_call_id"];
  return members;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "") return true;
  return typeof value === "object" && !(Symbol.iterator in value && !Array.isArray(value)) && Object.keys(value).length === 0;
}

/** The calls of a message, where all of them can be shown as calls. */
function callsOf(message: BaseMessage): ToolCall[] {
  const { tool_calls: calls } = message as unknown as { tool_calls?: ToolCall[] };
  const arePlain = (calls ?? []).every((call) => typeof call.id === "string" && isPlainJson(call.args));
  return arePlain ? (calls ?? []) : [];
}

function header(message: BaseMessage): Json {
  const role = ROLES[KINDS.get(message.constructor) ?? ""];
  if (message instanceof ToolMessage) {
    const result: Json = { role, function_call_id: message.tool_call_id, function_id: message.name ?? "" };
    return message.status === "error" ? { ...result, is_error: true } : result;
  }
  return message instanceof AIMessage || message instanceof AIMessageChunk ? { role, ...reply(message) } : { role };
}

/** What a reply says about its model. */
function reply(message: AIMessage | AIMessageChunk): Json {
  const about = (isPlainJson(message.response_metadata) ? message.response_metadata : {}) as Json;
  const reason = String(about["finish_reason"] ?? about["stop_reason"]);
  const known: Json = {
    model: about["model_name"],
    provider: about["model_provider"],
    stop_reason: callsOf(message).length > 0 ? "function_call" : (STOP_REASONS[reason] ?? "end"),
  };
  const { usage_metadata: usage } = message as unknown as { usage_metadata?: { input_tokens: number; output_tokens: number } };
  if (usage !== undefined) known["usage"] = { input: usage.input_tokens, output: usage.output_tokens };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => !isEmpty(value)));
}

function blocks(message: BaseMessage): Json[] {
  const parts = typeof message.content === "string" ? [message.content] : message.content;
  const texts = parts.map((part: unknown) => (typeof part === "string" ? part : (part as Json)["text"]));
  return [
    ...texts.filter((text): text is string => typeof text === "string" && text !== "").map((text) => ({ type: "text", text: wellFormed(text) })),
    ...callsOf(message).map((call) => ({ type: "function_call", id: call.id, function_id: call.name, arguments: call.args })),
  ];
}

function textOf(content: Json[]): string {
  return content.map((block) => (block["type"] === "text" ? String(block["text"]) : "")).join("");
}

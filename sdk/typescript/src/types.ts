/**
 * What the server answers. An answer is the JSON that the server sent: members that a newer server adds are there too.
 */

export type Json = { [name: string]: unknown };

/** A message in one of the formats. */
export type Message = { readonly [name: string]: unknown };

export type Format =
  | "bough"
  | "anthropic"
  | "openai-chat"
  | "openai-responses"
  | "gemini"
  | "ai-sdk"
  | "pi"
  | "phi";

export type Role = "user" | "assistant" | "function_result" | "custom";
export type Status = "idle" | "working" | "done" | "error";
export type StopReason = "end" | "length" | "function_call" | "aborted" | "error";
export type DeltaKind = "text" | "thinking" | "tool_arguments";

/** What a session says of itself. */
export interface SessionMeta {
  session_id: string;
  title: string;
  description: string;
  status: Status;
  status_reason?: string;
  metadata?: Json;
  forked_from?: string;
  created_at: number;
  updated_at: number;
  message_count: number;
  /** The entry at the end of the active path, where one session was asked for. */
  active_leaf?: string | null;
}

/** Where an entry went. */
export interface Appended {
  entry_id: string;
  parent_id?: string | null;
  timestamp: number;
  revision: number;
}

/** What a custom entry keeps: any JSON under a word of the application. */
export interface Custom {
  custom_type: string;
  data: unknown;
}

/** One entry of a batch: exactly one of `message` and `custom`. */
export interface NewEntry {
  message?: Message;
  custom?: Custom;
  format?: Format;
  entry_id?: string;
  parent_id?: string | null;
}

/** One entry of a session: exactly one of `message` and `custom`. */
export interface Entry {
  entry_id: string;
  parent_id?: string | null;
  revision?: number;
  timestamp?: number;
  message?: Json;
  custom?: Custom;
  losses?: Json[];
}

/** Some entries, and where to go on. */
export interface EntryPage {
  entries: Entry[];
  next_cursor?: string;
}

/** One branch, by the entry at its end. */
export interface Branch {
  entry_id: string;
  depth: number;
  last_activity: number;
  active: boolean;
  label?: string;
}

/** What one message cost. */
export interface Usage {
  input?: number;
  output?: number;
  cache_read?: number;
  cache_write?: number;
  reasoning?: number;
  cost_usd?: number;
}

/** What several messages cost together. */
export interface UsageTotals {
  messages: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  reasoning: number;
  cost_usd: number;
}

/** Usage by model, with the sum of all. */
export interface UsageByModel {
  total: UsageTotals;
  models: { [model: string]: UsageTotals };
}

/** What a session cost, and the branch that was asked for. */
export interface SessionUsage {
  session: UsageByModel;
  branch: UsageByModel;
}

/** A conversation as the API of a provider takes it. */
export interface FormattedConversation {
  messages: Json[];
  /** What instructs the model, for the formats that take it beside the messages. */
  system?: unknown;
  /** What the format could not carry. */
  losses?: Json[];
}

/** What a model would be sent. */
export interface Context {
  /** The entries, in Bough's own form. */
  messages: { entry_id: string; message: Json }[];
  estimated_tokens: number;
  left_out: number;
  /** What to send to the provider, when a format was asked for. */
  conversation?: FormattedConversation;
}

/** A line of text with the places that were found. */
export interface Snippet {
  kind: string;
  text: string;
  highlights: [number, number][];
}

/** One entry, or one session, that a search found. */
export interface SearchHit {
  meta: SessionMeta;
  preview?: string;
  entry_id?: string;
  revision?: number;
  role?: Role;
  timestamp?: number;
  snippet?: Snippet;
  on_active_path?: boolean;
  score?: number;
}

/** One page of what a search found, the best first. */
export interface SearchResult {
  hits: SearchHit[];
  next_cursor?: string;
}

/** One event. `cursor` is its position: watching `after` it goes on behind it. `data` is its payload. */
export interface Event {
  type: string;
  cursor: string;
  data: Json;
}

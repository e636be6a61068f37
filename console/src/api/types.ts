// The shapes of the HTTP API that the console reads. Members that it does not use are left out.

export type SessionStatus = "idle" | "working" | "done" | "error";

export interface SessionMeta {
  session_id: string;
  title: string;
  description: string;
  status: SessionStatus;
  status_reason?: string;
  metadata?: Record<string, unknown>;
  forked_from?: string;
  created_at: number;
  updated_at: number;
  message_count: number;
}

export interface UsageTotals {
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  reasoning: number;
  cost_usd: number;
  messages: number;
}

export interface UsageByModel {
  total: UsageTotals;
  models: Record<string, UsageTotals>;
}

export interface SessionDetails {
  archived: boolean;
  task_name?: string;
  task_status?: string;
  name?: string;
  preview?: string;
  model?: { provider: string; model: string };
  context_window?: number;
  entry_count: number;
  usage: UsageByModel;
  copied_usage?: UsageByModel;
}

export interface SessionPage {
  sessions: (SessionMeta & { details?: SessionDetails })[];
  next_cursor?: string;
}

export interface TextBlock {
  type: "text";
  text: string;
}

export interface ThinkingBlock {
  type: "thinking";
  text: string;
}

export interface ImageBlock {
  type: "image";
  mime: string;
  data: string;
}

export interface FunctionCallBlock {
  type: "function_call";
  id: string;
  function_id: string;
  arguments: unknown;
}

export interface FunctionResultBlock {
  type: "function_result";
  function_call_id: string;
  content: ContentBlock[];
  is_error?: boolean;
}

export type ContentBlock = TextBlock | ThinkingBlock | ImageBlock | FunctionCallBlock | FunctionResultBlock;

export interface Usage {
  input?: number;
  output?: number;
  cache_read?: number;
  cache_write?: number;
  reasoning?: number;
  cost_usd?: number;
}

export type Role = "user" | "assistant" | "function_result" | "custom";

export interface Message {
  role: Role;
  content: ContentBlock[];
  timestamp?: number;
  /** Of an assistant. */
  model?: string;
  provider?: string;
  stop_reason?: string;
  error_message?: string;
  error_kind?: string;
  warnings?: string[];
  usage?: Usage;
  /** Of a function result. */
  function_call_id?: string;
  function_id?: string;
  is_error?: boolean;
  details?: unknown;
  /** Of a custom message. */
  custom_type?: string;
}

export interface CustomPayload {
  custom_type: string;
  data: unknown;
}

/** One entry of a path: a message, or bookkeeping. */
export interface PathItem {
  entry_id: string;
  message?: Message;
  custom?: CustomPayload;
  parent_id?: string | null;
  revision?: number;
  timestamp?: number;
  /** The loop of a recorded agent that made it. */
  origin?: { loop_id?: string };
  /** The entries that hang below the same parent, this one among them. */
  siblings?: string[];
}

export interface PathPage {
  messages: PathItem[];
  next_cursor?: string;
}

/** What only one of two compared branches has. */
export interface BranchSide {
  entries: PathItem[];
  /** How many entries the other side does not have. */
  count: number;
}

export interface Comparison {
  common_entry_id?: string;
  left: BranchSide;
  right: BranchSide;
}

/** One entry as `GET …/entries/{id}` answers it. */
export interface StoredEntry {
  kind: "message" | "custom";
  id: string;
  parent_id: string | null;
  timestamp: number;
  revision: number;
  message?: Message;
  custom_type?: string;
  data?: unknown;
}

export interface SearchSnippet {
  kind: string;
  text: string;
  /** Start and end of each place, in code points. */
  highlights: [number, number][];
}

export interface SearchHit {
  meta: SessionMeta;
  details?: SessionDetails;
  preview?: string;
  entry_id?: string;
  role?: Role;
  timestamp?: number;
  snippet?: SearchSnippet;
  on_active_path?: boolean;
}

export interface SearchPage {
  hits: SearchHit[];
  next_cursor?: string;
  index?: { is_complete: boolean; behind_changes: number; behind_sessions: number };
}

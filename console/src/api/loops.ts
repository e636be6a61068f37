// The shapes of what the server knows about recorded sessions.

import type { Message } from "./types";

export interface LoopUsage {
  input: number;
  output: number;
  reasoning: number;
  cache_read: number;
  cache_write: number;
  total_tokens: number;
}

export interface TurnSummary {
  turn_index: number;
  started_at: number;
  ended_at: number;
  tool_results: number;
  usage: LoopUsage;
}

export interface LoopGroup {
  loop_ids: string[];
  winner?: string;
  evaluation_usage: LoopUsage;
}

export interface LoopSpawn {
  tool_call_id: string;
  tool_name: string;
  session_id: string;
  loop_id: string;
}

/** A summary that stands for messages of a loop in a compacted context. */
export interface LoopCompaction {
  created_at: number;
  hidden_messages: number;
  /** How many messages of the loop come before those. */
  kept_before: number;
  summary: string;
}

export interface LoopSummary {
  loop_id: string;
  agent_id: string;
  parent_loop_id?: string;
  continuation: "initial" | "default" | "rerun" | "branch" | "compaction";
  tag?: string;
  status: "pending" | "running" | "completed" | "rejected" | "aborted";
  started_at: number;
  ended_at?: number;
  rejection?: string;
  model?: string;
  messages: number;
  turns: TurnSummary[];
  usage: LoopUsage;
  children_loop_ids: string[];
  group?: LoopGroup;
  spawned: LoopSpawn[];
  compaction?: LoopCompaction;
}

export interface LoopsPage {
  loops: LoopSummary[];
  next_cursor?: string;
}

/** An entry with the loop that made it. */
export interface LoopEntry {
  entry_id: string;
  timestamp: number;
  origin?: { loop_id?: string };
  message?: Message;
}

export interface LoopEntryPage {
  entries: LoopEntry[];
  next_cursor?: string;
}

export interface SpawnLink {
  parent_session_id: string;
  parent_loop_id: string;
  tool_call_id: string;
  tool_name: string;
  child_session_id: string;
  child_loop_id?: string;
}

export interface SpawnedSession {
  session_id: string;
  agent_id: string;
  loops: number;
  usage: LoopUsage;
}

export interface SpawnsAnswer {
  spawns: SpawnLink[];
  sessions: SpawnedSession[];
  more: boolean;
}

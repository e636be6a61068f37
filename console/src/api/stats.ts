// The shapes of sums over all sessions, and of how the server is.

import type { UsageTotals } from "./types";

export interface StatsRow {
  day?: string;
  model?: string;
  agent?: string;
  project?: string;
  session_id?: string;
  usage: UsageTotals;
  model_time_ms: number;
  tool_calls: number;
  tool_errors: number;
  tool_time_ms: number;
}

export interface StatsAnswer {
  rows: StatsRow[];
  more: boolean;
  sessions: number;
}

/** Bytes on the disk, by what they are for. */
export interface StoreSize {
  measured_at: number;
  total_bytes: number;
  sessions_bytes: number;
  trash_bytes: number;
  staging_bytes: number;
  catalogue_bytes: number;
  search_bytes: number;
  shared_bytes: number;
}

/** Sessions by whether their newest checkpoint knows all their records. */
export interface Checkpoints {
  measured_at: number;
  checkpointed: number;
  dirty: number;
  unreadable: number;
}

export interface LastVerification {
  started_at: number;
  finished_at: number;
  sessions: number;
  bytes: number;
  damaged: number;
  /** Only for who administers the server. */
  damaged_sessions?: string[] | null;
  failure?: string | null;
}

export interface HealthAnswer {
  status: "ready" | "not ready";
  version: string;
  uptime_ms: number;
  draining: boolean;
  store: {
    kind: string;
    is_reachable: boolean;
    trouble?: string | null;
    sessions: number;
    reopened_sessions: number;
    /** Absent until it was measured, without files, and without the right to see metrics. */
    size?: StoreSize | null;
    checkpoints?: Checkpoints | null;
    /** What the store holds at the most. */
    limits: Record<string, number>;
  };
  /** Absent for a store without files, and without the right to see metrics. */
  verification?: {
    status: "never" | "well" | "damaged" | "failed";
    running_since?: number | null;
    last?: LastVerification | null;
  } | null;
  search: { is_complete: boolean; behind_changes: number; behind_sessions: number };
  config: { last_outcome: string; last_error?: string | null; rejected_reloads: number };
  /** Absent without the right to see metrics. */
  now?: Record<string, number> | null;
  since_start?: Record<string, number> | null;
  limits: Record<string, unknown>;
}

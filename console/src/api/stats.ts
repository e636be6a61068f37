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

export interface HealthAnswer {
  status: "ready" | "not ready";
  version: string;
  uptime_ms: number;
  draining: boolean;
  store: { kind: string; is_reachable: boolean; trouble?: string | null; sessions: number; reopened_sessions: number };
  search: Record<string, unknown>;
  config: Record<string, unknown>;
  /** Absent without the right to see metrics. */
  now?: Record<string, number> | null;
  since_start?: Record<string, number> | null;
  limits: Record<string, unknown>;
}

// From the loops and entries of a recorded session to the rows of its timeline.

import type { LoopEntry, LoopGroup, LoopSummary } from "../api/loops";
import type { Span } from "./axis";

/** A call of a tool, from the message that asks for it to the one that answers. */
export interface ToolSpan extends Span {
  id: string;
  tool: string;
  /** The turn that asks for it. */
  turn: number;
  entry: string;
  isOpen: boolean;
  hasFailed: boolean;
  /** Calls that run at the same time have different lanes, from 0. */
  lane: number;
}

export interface LoopRow extends Span {
  /** Its number in the session, from 1. */
  number: number;
  loop: LoopSummary;
  calls: ToolSpan[];
  /** What it made, the oldest first. */
  entries: LoopEntry[];
}

/** Loops that ran side by side, or one loop. */
export interface RowGroup {
  group: LoopGroup | undefined;
  rows: LoopRow[];
}

export function rowsOf(loops: LoopSummary[], entries: LoopEntry[], now: number): LoopRow[] {
  const byLoop = new Map<string, LoopEntry[]>();
  for (const entry of entries) {
    const loop = entry.origin?.loop_id;
    if (loop !== undefined) {
      const made = byLoop.get(loop);
      if (made === undefined) {
        byLoop.set(loop, [entry]);
      } else {
        made.push(entry);
      }
    }
  }
  return loops.map((loop, at) => {
    const made = byLoop.get(loop.loop_id) ?? [];
    const calls = callsOf(loop, made, now);
    const end = loop.ended_at ?? (loop.status === "running" ? now : Math.max(loop.started_at, ...made.map((entry) => entry.timestamp)));
    return { number: at + 1, loop, calls, start: loop.started_at, end: Math.max(end, loop.started_at), entries: made };
  });
}

/** Puts the loops of a parallel group together, where the first of them stands. */
export function grouped(rows: LoopRow[]): RowGroup[] {
  const groups: RowGroup[] = [];
  const byFirst = new Map<string, RowGroup>();
  for (const row of rows) {
    const { group } = row.loop;
    const key = group?.loop_ids[0];
    const known = key === undefined ? undefined : byFirst.get(key);
    if (known !== undefined) {
      known.rows.push(row);
      continue;
    }
    const made = { group, rows: [row] };
    groups.push(made);
    if (key !== undefined) {
      byFirst.set(key, made);
    }
  }
  return groups;
}

/** What a summary stands for in the context; nothing where the messages of the loop are not all here. */
export function hiddenOf({ loop, entries }: LoopRow): LoopEntry[] {
  const messages = entries.filter((entry) => entry.message !== undefined);
  const { kept_before: before = 0, hidden_messages: count = 0 } = loop.compaction ?? {};
  return messages.length === loop.messages ? messages.slice(before, before + count) : [];
}

function callsOf(loop: LoopSummary, entries: LoopEntry[], now: number): ToolSpan[] {
  const calls: ToolSpan[] = [];
  for (const { entry_id: entry, timestamp, message } of entries) {
    for (const block of message?.role === "assistant" ? message.content : []) {
      if (block.type === "function_call") {
        const end = loop.ended_at ?? now;
        const turn = turnAt(loop, timestamp);
        calls.push({ id: block.id, tool: block.function_id, turn, entry, start: timestamp, end, isOpen: true, hasFailed: false, lane: 0 });
      }
    }
    if (message?.role === "function_result") {
      const call = calls.find((known) => known.isOpen && known.id === message.function_call_id);
      if (call !== undefined) {
        Object.assign(call, { end: Math.max(timestamp, call.start), isOpen: false, hasFailed: message.is_error === true });
      }
    }
  }
  const lanesEnd: number[] = [];
  for (const call of calls) {
    const free = lanesEnd.findIndex((end) => end <= call.start);
    call.lane = free < 0 ? lanesEnd.length : free;
    lanesEnd[call.lane] = call.end;
  }
  return calls;
}

/** The turn in which a message was said: the last one that had begun. */
function turnAt(loop: LoopSummary, time: number): number {
  return loop.turns.findLast((turn) => turn.started_at <= time)?.turn_index ?? 0;
}

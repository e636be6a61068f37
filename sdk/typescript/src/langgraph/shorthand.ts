/**
 * Short forms of what the framework says with every checkpoint in almost the same words. Each is used only where the usual form
 * comes back from it exactly.
 */

import type { Checkpoint } from "@langchain/langgraph-checkpoint";

import type { Json } from "../types.js";
import type { Stored } from "./documents.js";

/** A stored value, or the list that stands for it. */
export type Short = Stored | unknown[];

/** The versions that nodes have seen; of a node that only its own trigger wakes, just the version. */
export type ShortSeen = { [node: string]: number | string | Checkpoint["versions_seen"][string] };

/** The version of the framework's checkpoints that the short form stands for. */
const VERSION = 4;

export function shortSeen(seen: Checkpoint["versions_seen"]): ShortSeen {
  const nodes = Object.entries(seen).map(([node, versions]) => {
    const own = versions[trigger(node)];
    return [node, own !== undefined && Object.keys(versions).length === 1 ? own : versions] as const;
  });
  return Object.fromEntries(nodes);
}

export function longSeen(stored: ShortSeen): Checkpoint["versions_seen"] {
  const nodes = Object.entries(stored).map(([node, seen]) => [node, typeof seen === "object" ? { ...seen } : { [trigger(node)]: seen }] as const);
  return Object.fromEntries(nodes) as Checkpoint["versions_seen"];
}

function trigger(node: string): string {
  return node === "__start__" ? node : `branch:to:${node}`;
}

/** Stored metadata: the source and the step, where it says nothing else. */
export function shortMetadata(stored: Stored): Short {
  const { source, step, parents, ...more } = (stored.j ?? {}) as Json;
  const isUsual = source !== undefined && step !== undefined && isEmpty(parents) && isEmpty(more);
  return isUsual ? [source, step] : stored;
}

export function longMetadata(stored: Short): Stored {
  return Array.isArray(stored) ? { j: { source: stored[0], step: stored[1], parents: {} } } : stored;
}

/** Stored members of a checkpoint: its time and the channels that changed, where it says nothing else. */
export function shortMembers(stored: Stored): Short {
  const { v, ts, updated_channels: changed = [], ...more } = (stored.j ?? {}) as Json;
  return v === VERSION && ts !== undefined && Array.isArray(changed) && isEmpty(more) ? [ts, ...(changed as unknown[])] : stored;
}

export function longMembers(stored: Short): Stored {
  if (!Array.isArray(stored)) return stored;
  const [ts, ...changed] = stored;
  return { j: { v: VERSION, ts, ...(changed.length > 0 && { updated_channels: changed }) } };
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

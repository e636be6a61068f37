/**
 * Short forms of what the framework says with every checkpoint in almost the same words. Each is used only where the usual form
 * comes back from it exactly.
 */

import type { Checkpoint } from "@langchain/langgraph-checkpoint";

import type { Json } from "../types.js";
import type { CheckpointDocument, Stored, WritesDocument } from "./documents.js";

/** A stored value, or the list that stands for it. */
export type Short = Stored | unknown[];

/** The versions that nodes have seen; of a node that only its own trigger wakes, just the version. */
export type ShortSeen = { [node: string]: number | string | Checkpoint["versions_seen"][string] };

/** The version of the framework's checkpoints that the short form stands for. */
const VERSION = 4;
/** How the names of the channels begin that wake nodes, and the paths of tasks that were woken by one. */
const BRANCH = "branch:to:";
const PULL = "~__pregel_pull, ";
/** The node that stands for the input, which sees nothing, and its short form. */
const INPUT = "__input__";
const SHORT_INPUT = "<";

/** The document of a checkpoint as its entry keeps it. */
export function shortCheckpoint(document: CheckpointDocument): CheckpointDocument {
  const { cv, c, x } = document;
  const [time, ...changed] = Array.isArray(x) ? x : [];
  const members = Array.isArray(x) ? [time, ...changed.map((name) => shortText(String(name), BRANCH))] : x;
  return { ...document, cv: renamed(cv, (name) => shortText(name, BRANCH)), c: renamed(c, (name) => shortText(name, BRANCH)), x: members };
}

/** What `shortCheckpoint` was given. */
export function longCheckpoint(stored: CheckpointDocument): CheckpointDocument {
  const { cv, c, x } = stored;
  const [time, ...changed] = Array.isArray(x) ? x : [];
  const members = Array.isArray(x) ? [longTime(time), ...changed.map((name) => longText(String(name), BRANCH))] : x;
  return { ...stored, cv: renamed(cv, (name) => longText(name, BRANCH)), c: renamed(c, (name) => longText(name, BRANCH)), x: members };
}

/** The document of a task's writes as its entry keeps it. */
export function shortWrites(document: WritesDocument): WritesDocument {
  const w = document.w.map(([name, stored]): [string, Stored] => [shortText(name, BRANCH), stored]);
  return { ...document, ...(document.p !== undefined && { p: shortText(document.p, PULL) }), w };
}

/** What `shortWrites` was given. */
export function longWrites(stored: WritesDocument): WritesDocument {
  const w = stored.w.map(([name, value]): [string, Stored] => [longText(name, BRANCH), value]);
  return { ...stored, ...(stored.p !== undefined && { p: longText(stored.p, PULL) }), w };
}

/** A text that mostly begins so: `>` instead, and a mark before a text that could be taken for a short form. */
function shortText(text: string, beginning: string): string {
  if (text.startsWith(beginning)) return `>${text.slice(beginning.length)}`;
  return /^[>=]/.test(text) ? `=${text}` : text;
}

function longText(stored: string, beginning: string): string {
  if (stored.startsWith(">")) return beginning + stored.slice(1);
  return stored.startsWith("=") ? stored.slice(1) : stored;
}

function renamed<T>(members: { [name: string]: T }, rename: (name: string) => string): { [name: string]: T } {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [rename(name), value]));
}

/** A time as the Python package writes it, in microseconds, or as a text. */
function longTime(stored: unknown): unknown {
  if (typeof stored !== "number") return stored;
  const seconds = new Date(Math.floor(stored / 1000)).toISOString().slice(0, 19);
  const rest = stored % 1_000_000;
  return `${seconds}${rest === 0 ? "" : `.${String(rest).padStart(6, "0")}`}+00:00`;
}

export function shortSeen(seen: Checkpoint["versions_seen"]): ShortSeen {
  const nodes = Object.entries(seen).map(([node, versions]) => {
    if (node === INPUT && isEmpty(versions)) return [SHORT_INPUT, 0] as const;
    const own = versions[trigger(node)];
    return [node, own !== undefined && Object.keys(versions).length === 1 ? own : versions] as const;
  });
  return Object.fromEntries(nodes);
}

export function longSeen(stored: ShortSeen): Checkpoint["versions_seen"] {
  const nodes = Object.entries(stored).map(([node, seen]) => {
    if (node === SHORT_INPUT && seen === 0) return [INPUT, {}] as const;
    return [node, typeof seen === "object" ? { ...seen } : { [trigger(node)]: seen }] as const;
  });
  return Object.fromEntries(nodes) as Checkpoint["versions_seen"];
}

function trigger(node: string): string {
  return node === "__start__" ? node : BRANCH + node;
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

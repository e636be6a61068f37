// Straight runs of a large tree as one row each, so that its branches can be seen together.

import { count } from "../ui/format";
import type { TreeLayout, TreeNode } from "./layout";
import type { TreeEntry } from "./source";

/** The kind of the row that stands for a run. */
export const FOLDED = "folded";

/** Smaller trees are shown whole. */
const FOLDED_TREE_MIN = 300;
/** Entries of a run that stay at its ends, and how many must be between them. */
const KEPT_BEFORE = 3;
const KEPT_AFTER = 6;
const RUN_MIN = 12;

export interface FoldOptions {
  /** Entries that must be seen, such as the chosen one. */
  kept: ReadonlySet<string>;
  /** Runs that the reader opened, by their ids. */
  opened: ReadonlySet<string>;
}

/** The entries that are drawn. */
export function foldRuns(layout: TreeLayout, { kept, opened }: FoldOptions): TreeEntry[] {
  if (layout.nodes.length < FOLDED_TREE_MIN) {
    return layout.nodes.map((node) => node.entry);
  }
  const entries: TreeEntry[] = [];
  /** The rows of runs by the last entry that they stand for. */
  const rowsByEnd = new Map<string, string>();
  const hidden = new Set<TreeNode>();
  for (const node of layout.nodes) {
    if (hidden.has(node)) {
      continue;
    }
    const parent = rowsByEnd.get(node.entry.parent ?? "") ?? node.entry.parent;
    const run = isStraight(node, kept) && !isStraight(node.parent, kept) ? foldable(node, kept) : [];
    const [first] = run.slice(KEPT_BEFORE);
    const inside = first === undefined || opened.has(runId(first)) ? [] : run.slice(KEPT_BEFORE, -KEPT_AFTER);
    const last = inside.at(-1);
    entries.push({ ...node.entry, parent });
    if (first !== undefined && last !== undefined) {
      inside.forEach((one) => hidden.add(one));
      rowsByEnd.set(last.entry.id, runId(first));
      entries.push({ id: runId(first), parent: first.entry.parent, kind: FOLDED, preview: `… ${count(inside.length)} entries`, tool: "", at: first.entry.at, hasFailed: false });
    }
  }
  return entries;
}

/** The run that begins with an entry, if there is enough in it to fold. */
function foldable(start: TreeNode, kept: ReadonlySet<string>): TreeNode[] {
  const run: TreeNode[] = [];
  for (let node: TreeNode | undefined = start; node !== undefined && isStraight(node, kept); node = node.children[0]) {
    run.push(node);
  }
  return run.length >= KEPT_BEFORE + KEPT_AFTER + RUN_MIN ? run : [];
}

/** Whether an entry has one child, is the only one of its parent, and need not be seen. */
function isStraight(node: TreeNode | undefined, kept: ReadonlySet<string>): boolean {
  return node !== undefined && node.children.length === 1 && node.parent?.children.length === 1 && !kept.has(node.entry.id);
}

function runId(first: TreeNode): string {
  return `run of ${first.entry.id}`;
}

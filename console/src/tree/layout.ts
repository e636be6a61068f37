// Where each entry of a tree stands: its depth, and a lane that no other branch has at that depth.

import type { TreeEntry } from "./source";

export interface TreeNode {
  entry: TreeEntry;
  depth: number;
  lane: number;
  parent: TreeNode | undefined;
  children: TreeNode[];
  isActive: boolean;
}

export interface TreeLayout {
  /** In the order of their depth. */
  nodes: TreeNode[];
  byId: ReadonlyMap<string, TreeNode>;
  lanes: number;
  depth: number;
}

/** The active path gets the first lane, and every other branch the first lane that is free as long as it is. */
export function layOut(entries: TreeEntry[], activeLeaf: string | undefined): TreeLayout {
  const byId = new Map<string, TreeNode>();
  for (const entry of entries) {
    byId.set(entry.id, { entry, depth: 0, lane: 0, parent: undefined, children: [], isActive: false });
  }
  const roots = connect(byId);
  const nodes = withDepths(roots);
  for (let node = activeLeaf === undefined ? undefined : byId.get(activeLeaf); node !== undefined; node = node.parent) {
    node.isActive = true;
  }
  const lanes = assignLanes(roots);
  return { nodes, byId, lanes, depth: (nodes.at(-1)?.depth ?? -1) + 1 };
}

/** Links children to parents; an entry whose parent is not there is a root. */
function connect(byId: ReadonlyMap<string, TreeNode>): TreeNode[] {
  const roots: TreeNode[] = [];
  for (const node of byId.values()) {
    const parent = node.entry.parent === undefined ? undefined : byId.get(node.entry.parent);
    if (parent === undefined) {
      roots.push(node);
    } else {
      node.parent = parent;
      parent.children.push(node);
    }
  }
  return roots;
}

function withDepths(roots: TreeNode[]): TreeNode[] {
  const nodes = [...roots];
  for (let at = 0; at < nodes.length; at += 1) {
    const node = nodes[at] as TreeNode;
    for (const child of node.children) {
      child.depth = node.depth + 1;
      nodes.push(child);
    }
  }
  return nodes;
}

/** Goes down each branch before the next one begins; says how many lanes there are. */
function assignLanes(roots: TreeNode[]): number {
  /** Where the branches of a lane begin and end. */
  const taken: [number, number][][] = [];
  const waiting = activeFirst(roots).reverse();
  for (let start = waiting.pop(); start !== undefined; start = waiting.pop()) {
    const branch = branchFrom(start);
    const last = branch.at(-1) as TreeNode;
    // The line to the branch leaves its parent one row above.
    const span: [number, number] = [Math.max(0, start.depth - 1), last.depth];
    const lane = freeLane(taken, span, start.parent === undefined ? 0 : start.parent.lane + 1);
    (taken[lane] ??= []).push(span);
    for (const node of branch) {
      node.lane = lane;
    }
    // Those that leave it last are the nearest to it.
    for (const node of branch) {
      waiting.push(...activeFirst(node.children).slice(1));
    }
  }
  return taken.length;
}

/** An entry with what goes straight on from it. */
function branchFrom(start: TreeNode): TreeNode[] {
  const branch = [start];
  for (let next = activeFirst(start.children)[0]; next !== undefined; next = activeFirst(next.children)[0]) {
    branch.push(next);
  }
  return branch;
}

function activeFirst(nodes: TreeNode[]): TreeNode[] {
  const active = nodes.find((node) => node.isActive);
  return active === undefined ? nodes : [active, ...nodes.filter((node) => node !== active)];
}

function freeLane(taken: [number, number][][], [from, to]: [number, number], first: number): number {
  let lane = first;
  while ((taken[lane] ?? []).some(([start, end]) => start <= to && from <= end)) {
    lane += 1;
  }
  return lane;
}

/** The newest end of a branch below an entry. */
export function endBelow(node: TreeNode): TreeNode {
  return branchFrom(node).at(-1) ?? node;
}

/** The last entry that two paths share. */
export function whereTheyPart(a: TreeNode, b: TreeNode): TreeNode | undefined {
  const path = new Set<TreeNode>();
  for (let node: TreeNode | undefined = a; node !== undefined; node = node.parent) {
    path.add(node);
  }
  let node: TreeNode | undefined = b;
  while (node !== undefined && !path.has(node)) {
    node = node.parent;
  }
  return node;
}

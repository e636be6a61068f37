// A path as it is shown: results of calls stand beside their calls.

import type { PathItem } from "../api/types";

export interface Group {
  item: PathItem;
  /** The results of the calls that the item makes, by the id of the call. */
  results: ReadonlyMap<string, PathItem>;
}

const NO_RESULTS: ReadonlyMap<string, PathItem> = new Map();

export function grouped(items: PathItem[]): Group[] {
  const callers = new Map<string, Map<string, PathItem>>();
  const groups: Group[] = [];
  for (const item of items) {
    const answered = item.message?.role === "function_result" ? item.message.function_call_id : undefined;
    const caller = answered === undefined ? undefined : callers.get(answered);
    if (answered !== undefined && caller !== undefined) {
      caller.set(answered, item);
      continue;
    }
    const calls = (item.message?.content ?? []).filter((block) => block.type === "function_call");
    const results = calls.length === 0 ? NO_RESULTS : new Map<string, PathItem>();
    for (const call of calls) {
      callers.set(call.id, results as Map<string, PathItem>);
    }
    groups.push({ item, results });
  }
  return groups;
}

/** Whether two groups show the same. */
export function isSameGroup(a: Group, b: Group): boolean {
  return a.item === b.item && a.results.size === b.results.size && [...a.results].every(([id, item]) => b.results.get(id) === item);
}

/** The store of LangGraph: long-term memory that threads share. */

import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";

import { clientOf, type UrlOrClient } from "../adapters.js";
import type { Documents } from "../documents.js";
import type { Document, DocumentRemoval, NewDocument } from "../types.js";

/** How many items a search gives when it does not say. */
const SEARCH_LIMIT = 10;

export interface StoreOptions {
  /** The scope whose documents the items are. */
  scope?: string;
}

/**
 * Keeps the items of LangGraph's store in Bough, as documents by key of one scope.
 *
 * The operations of one batch see what was there before it; what they put and delete is one durable commit. Searching compares
 * values and namespaces and gives items in the order of their keys. There are no vectors: a `query` changes nothing.
 */
export class BoughStore extends BaseStore {
  readonly #documents: Documents;

  constructor(urlOrClient?: UrlOrClient, options: StoreOptions = {}) {
    super();
    this.#documents = clientOf(urlOrClient).documents(options.scope ?? "langgraph");
  }

  /** Does several operations. */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const gets = operations.filter(isGet).map((operation) => keyOf(operation.namespace, operation.key));
    const found = new Map((await this.#documents.getMany(new Set(gets))).map((document) => [document.key, itemOf(document)]));
    const results: unknown[] = [];
    const puts = new Map<string, PutOperation>();
    for (const operation of operations) {
      if ("value" in operation) {
        // Of several for one item, the last one counts.
        puts.set(keyOf(operation.namespace, operation.key), operation);
        results.push(undefined);
      } else if ("key" in operation) results.push(found.get(keyOf(operation.namespace, operation.key)) ?? null);
      else if ("namespacePrefix" in operation) results.push(await this.#search(operation));
      else results.push(await this.#namespaces(operation));
    }
    await this.#write(puts);
    return results as OperationResults<Op>;
  }

  async #search({ namespacePrefix, filter = {}, limit = SEARCH_LIMIT, offset = 0 }: SearchOperation): Promise<SearchItem[]> {
    const found: SearchItem[] = [];
    if (limit <= 0) return found;
    for await (const document of this.#documents.list({ prefix: prefixOf(namespacePrefix) })) {
      const item = itemOf(document);
      if (Object.entries(filter).every(([name, wanted]) => matches(item.value[name], wanted))) found.push(item);
      if (found.length >= offset + limit) break;
    }
    return found.slice(offset, offset + limit);
  }

  async #namespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation): Promise<string[][]> {
    const prefixes = matchConditions.filter(({ matchType }) => matchType === "prefix").map(({ path }) => literal(path));
    const longest = prefixes.reduce((one, other) => (other.length > one.length ? other : one), []);
    const found = new Map<string, string[]>();
    for await (const { key } of this.#documents.list({ prefix: prefixOf(longest), keysOnly: true })) {
      const [namespace] = partsOf(key);
      if (!matchConditions.every((condition) => fits(condition, namespace))) continue;
      const cut = namespace.slice(0, maxDepth);
      found.set(prefixOf(cut), cut);
    }
    const sorted = [...found.values()].sort(compare);
    return sorted.slice(offset ?? 0, limit === undefined ? undefined : (offset ?? 0) + limit);
  }

  async #write(puts: Map<string, PutOperation>): Promise<void> {
    if (puts.size === 0) return;
    const put: NewDocument[] = [];
    const gone: DocumentRemoval[] = [];
    for (const [key, { value }] of puts) {
      if (value === null) gone.push({ key });
      else put.push({ key, value });
    }
    await this.#documents.write({ put, delete: gone });
  }
}

function isGet(operation: Operation): operation is GetOperation {
  return "key" in operation && !("value" in operation);
}

// The key of a document is the labels of its namespace, each with a slash behind it, another slash and the item's key. So the
// items of a namespace, and of all namespaces below it, are listed by a prefix. The Python package stores them alike.

function prefixOf(namespace: readonly string[]): string {
  return namespace.map((label) => `${escaped(label)}/`).join("");
}

function keyOf(namespace: readonly string[], key: string): string {
  return `${prefixOf(namespace)}/${escaped(key)}`;
}

function partsOf(documentKey: string): [namespace: string[], key: string] {
  const end = documentKey.indexOf("//");
  const labels = documentKey.slice(0, end).split("/");
  return [labels.map(unescaped), unescaped(documentKey.slice(end + 2))];
}

function escaped(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("/", "%2F");
}

function unescaped(text: string): string {
  return text.replaceAll("%2F", "/").replaceAll("%25", "%");
}

function itemOf(document: Document): Item {
  const [namespace, key] = partsOf(document.key);
  const value = document.value as Item["value"];
  return { namespace, key, value, createdAt: new Date(document.created_at), updatedAt: new Date(document.updated_at) };
}

/** The labels of a condition before the first wildcard. */
function literal(path: readonly string[]): string[] {
  const end = path.indexOf("*");
  return end < 0 ? [...path] : path.slice(0, end);
}

function fits({ matchType, path }: MatchCondition, namespace: string[]): boolean {
  if (path.length > namespace.length) return false;
  const first = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, place) => label === "*" || label === namespace[first + place]);
}

function compare(one: string[], other: string[]): number {
  for (let place = 0; place < Math.min(one.length, other.length); place += 1) {
    const [left, right] = [one[place] ?? "", other[place] ?? ""];
    if (left !== right) return left < right ? -1 : 1;
  }
  return one.length - other.length;
}

/** Whether a value is as a filter asks: equal, or as its operators say, member by member and item by item. */
function matches(value: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(value) && value.length === wanted.length && wanted.every((one, place) => matches(value[place], one));
  }
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  const members = Object.entries(wanted);
  if (members.some(([name]) => name.startsWith("$"))) return members.every(([name, other]) => compares(name, value, other));
  if (typeof value !== "object" || value === null) return false;
  return members.every(([name, other]) => matches((value as { [name: string]: unknown })[name], other));
}

function compares(operator: string, value: unknown, other: unknown): boolean {
  switch (operator) {
    case "$eq":
      return matches(value, other);
    case "$ne":
      return !matches(value, other);
    case "$gt":
      return Number(value) > Number(other);
    case "$gte":
      return Number(value) >= Number(other);
    case "$lt":
      return Number(value) < Number(other);
    case "$lte":
      return Number(value) <= Number(other);
    default:
      throw new Error(`Unsupported operator: ${operator}`);
  }
}

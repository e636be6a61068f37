/**
 * A checkpointer and a store for LangGraph.
 *
 * ```ts
 * import { BoughSaver, BoughStore } from "boughdb/langgraph";
 *
 * const url = "http://127.0.0.1:7717";
 * const graph = builder.compile({ checkpointer: new BoughSaver(url), store: new BoughStore(url) });
 * ```
 *
 * A thread is a session of Bough with the same id. The messages of the graph's state are its messages, stored once, so that a
 * run is read, searched and watched as a conversation; checkpoints are custom entries that refer to them. The store's items are
 * documents by key.
 */

export type { UrlOrClient } from "./adapters.js";
export { BoughSaver, type SaverOptions } from "./langgraph/saver.js";
export { BoughStore, type StoreOptions } from "./langgraph/store.js";

/**
 * A checkpointer for LangGraph.
 *
 * ```ts
 * import { BoughSaver } from "boughdb/langgraph";
 *
 * const graph = builder.compile({ checkpointer: new BoughSaver("http://127.0.0.1:7717") });
 * ```
 *
 * A thread is a session of Bough with the same id. The messages of the graph's state are its messages, stored once, so that a
 * run is read, searched and watched as a conversation; checkpoints are custom entries that refer to them.
 */

export type { UrlOrClient } from "./adapters.js";
export { BoughSaver, type SaverOptions } from "./langgraph/saver.js";

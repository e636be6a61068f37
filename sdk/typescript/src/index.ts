export { Bough, type BoughOptions, type ListOptions, type LocalOptions, type SessionOptions } from "./client.js";
export { Documents } from "./documents.js";
export {
  ApiError,
  BoughError,
  Conflict,
  ConnectionFailed,
  DocumentConflict,
  Forbidden,
  InvalidRequest,
  LeafConflict,
  NotFound,
  StartFailed,
  Unavailable,
} from "./errors.js";
export { Reply, type ReplyEnd } from "./reply.js";
export type { Retries } from "./requests.js";
export {
  Session,
  type AppendOptions,
  type EntriesOptions,
  type ForkOptions,
  type MessagesOptions,
  type StreamOptions,
  type WatchOptions,
} from "./session.js";
export type * from "./types.js";
export { Watch } from "./watch.js";

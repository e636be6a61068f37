export { Bough, type BoughOptions, type ListOptions, type LocalOptions, type SessionOptions } from "./client.js";
export {
  ApiError,
  BoughError,
  Conflict,
  ConnectionFailed,
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
  type MessagesOptions,
  type StreamOptions,
  type WatchOptions,
} from "./session.js";
export type * from "./types.js";
export { Watch } from "./watch.js";

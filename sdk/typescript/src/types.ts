/**
 * What the server answers, and what it is sent: the shapes of the OpenAPI document under the names of the client. An answer is the JSON
 * that the server sent: members that a newer server adds are there too.
 */

import type { components } from "./openapi.js";

type Schemas = components["schemas"];

/** Members of which `null` says something: the entry above a root, and the end of an empty path. */
type MayBeNull = "parent_id" | "active_leaf";

/** The document says of members that may be absent that they may be `null` too; the server leaves them out. */
type Sent<T> = T extends [unknown, unknown]
  ? T
  : T extends (infer Item)[]
    ? Sent<Item>[]
    : T extends object
      ? { [Name in keyof T]: Name extends MayBeNull ? T[Name] : undefined extends T[Name] ? Sent<Exclude<T[Name], null>> : Sent<T[Name]> }
      : T;

export type Json = { [name: string]: unknown };

/** A message in one of the formats. */
export type Message = { readonly [name: string]: unknown };

export type Format = Schemas["Format"];
export type Role = Schemas["Role"];
export type Status = Schemas["SessionStatus"];
export type StopReason = Schemas["StopReason"];
export type DeltaKind = Schemas["MessageDelta"]["kind"];

/** What a session says of itself. */
export interface SessionMeta extends Sent<Schemas["SessionMeta"]> {
  /** The entry at the end of the active path, where one session was asked for. */
  active_leaf?: string | null;
}

/** Where an entry went. */
export type Appended = Sent<Schemas["AppendedEntry"]>;

/** What a custom entry keeps: any JSON under a word of the application. */
export type Custom = Schemas["OpaqueBody"];

/** One entry of a batch: exactly one of `message` and `custom`. */
export interface NewEntry extends Omit<Sent<Schemas["NewEntry"]>, "message"> {
  message?: Message;
}

/** One entry of a session: exactly one of `message` and `custom`. */
export type Entry = Sent<Schemas["EntryItem"]>;

/** Some entries, and where to go on. */
export type EntryPage = Sent<Schemas["EntriesResult"]>;

/** One branch, by the entry at its end. */
export type Branch = Sent<Schemas["Branch"]>;

/** A document by key. */
export interface Document {
  key: string;
  version: number;
  created_at: number;
  updated_at: number;
  /** Absent where only keys were asked for. */
  value?: unknown;
}

/** A document to put. */
export interface NewDocument {
  key: string;
  value: unknown;
  expected_version?: number;
}

/** A document to delete. */
export interface DocumentRemoval {
  key: string;
  expected_version?: number;
}

/** What a batch of documents did. */
export interface WrittenDocuments {
  documents: { key: string; version: number }[];
  deleted: number;
}

/** What one message cost. */
export type Usage = Sent<Schemas["Usage"]>;

/** What several messages cost together. */
export type UsageTotals = Required<Schemas["UsageTotals"]>;

/** Usage by model, with the sum of all. */
export type UsageByModel = Sent<Schemas["UsageByModel"]>;

/** What a session cost, and the branch that was asked for. */
export type SessionUsage = Sent<Schemas["UsageResult"]>;

/** A conversation as the API of a provider takes it. */
export type FormattedConversation = Sent<Schemas["FormattedConversation"]>;

/** What a model would be sent; `conversation` is what to send to the provider, when a format was asked for. */
export type Context = Sent<Schemas["ContextResult"]>;

/** What a compaction does, or would do. */
export type Compaction = Sent<Schemas["CompactionResult"]>;

/** What undoing a compaction did. */
export type UndoneCompaction = Sent<Schemas["UndoCompactionResult"]>;

/** A line of text with the places that were found. */
export type Snippet = Schemas["SearchSnippet"];

/** One entry, or one session, that a search found. */
export type SearchHit = Sent<Schemas["SearchHit"]>;

/** One page of what a search found, the best first. */
export type SearchResult = Sent<Schemas["SearchResult"]>;

/** One event. `cursor` is its position: watching `after` it goes on behind it. `data` is its payload. */
export interface Event {
  type: string;
  cursor: string;
  data: Json;
}

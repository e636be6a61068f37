/**
 * Whether the types of the client are those of the OpenAPI document, from which `api.ts` is made: each type of an answer takes
 * what the document says is sent, and what the client sends is what the document says is taken. This file only has to compile.
 */

import type {
  Appended,
  Branch,
  DeltaKind,
  Entry,
  EntryPage,
  Format,
  NewEntry,
  Role,
  SearchHit,
  SearchResult,
  SessionMeta,
  SessionUsage,
  Snippet,
  Status,
  StopReason,
  Usage,
  UsageByModel,
  UsageTotals,
} from "boughdb";

import type { components } from "./api.js";

type Schemas = components["schemas"];

/** The document says of members that may be absent that they may be `null`; the server leaves them out. */
type Sent<T> = T extends (infer Item)[]
  ? Sent<Item>[]
  : T extends object
    ? { [Name in keyof T]: undefined extends T[Name] ? Sent<Exclude<T[Name], null>> : Sent<T[Name]> }
    : T;

/** Says that what one side gives is what the other takes. */
type Takes<Taken, Given extends Taken> = [Taken, Given];

export type Checked = [
  Takes<SessionMeta, Sent<Schemas["SessionMeta"]>>,
  Takes<Appended, Sent<Schemas["AppendedEntry"]>>,
  Takes<Omit<Entry, "message">, Sent<Omit<Schemas["EntryItem"], "message">>>,
  Takes<Omit<EntryPage, "entries">, Sent<Omit<Schemas["EntriesResult"], "entries">>>,
  Takes<Branch, Sent<Schemas["Branch"]>>,
  Takes<UsageTotals, Required<Sent<Schemas["UsageTotals"]>>>,
  Takes<UsageByModel["models"][string], Required<Sent<Schemas["UsageTotals"]>>>,
  Takes<keyof SessionUsage, keyof Schemas["UsageResult"]>,
  Takes<Usage, Sent<Schemas["Usage"]>>,
  Takes<Omit<Snippet, "highlights">, Sent<Omit<Schemas["SearchSnippet"], "highlights">>>,
  Takes<Omit<SearchHit, "snippet">, Sent<Omit<Schemas["SearchHit"], "snippet">>>,
  Takes<Omit<SearchResult, "hits">, Sent<Omit<Schemas["SearchResult"], "hits">>>,
  Takes<Omit<Schemas["NewEntry"], "message" | "custom" | "origin">, Omit<NewEntry, "message" | "custom">>,
  Takes<Format, Schemas["Format"]>,
  Takes<Schemas["Format"], Format>,
  Takes<Role, Schemas["Role"]>,
  Takes<Schemas["Role"], Role>,
  Takes<Status, Schemas["SessionStatus"]>,
  Takes<Schemas["SessionStatus"], Status>,
  Takes<StopReason, Schemas["StopReason"]>,
  Takes<Schemas["StopReason"], StopReason>,
  Takes<DeltaKind, Schemas["MessageDelta"]["kind"]>,
  Takes<Schemas["MessageDelta"]["kind"], DeltaKind>,
];

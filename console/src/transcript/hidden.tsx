// What a compaction hides from the model: the messages that its summary stands for.

import { useEffect, useState } from "preact/hooks";
import { describe, isAbort } from "../api/client";
import type { CustomPayload, Message, PathItem } from "../api/types";
import { sessionHref } from "../router";
import { clockTime, counted } from "../ui/format";
import { inert } from "../ui/inert";
import { speaker } from "./as_markdown";
import { hiddenBy, type HiddenPart } from "./path";
import { dataOf, previewOf } from "./preview";

/** The type of the entry that says that a summary stands for what is before it. */
export const COMPACTION = "bough.compaction";

interface HiddenEntry {
  entry_id: string;
  timestamp?: number;
  message?: Message;
  custom?: CustomPayload;
}

interface HiddenEntriesProps {
  session: string;
  entries: HiddenEntry[];
  /** Whether there are more than these. */
  hasMore?: boolean;
}

/** The messages, a line for each that leads to it. */
export function HiddenEntries({ session, entries, hasMore = false }: HiddenEntriesProps) {
  return (
    <>
      <p class="muted">
        {hasMore ? "The first " : "In the context it stands for "}
        {counted(entries.length, "entry", "entries")}
        {hasMore ? " of those that it stands for in the context:" : ":"}
      </p>
      <ol class="hidden-entries">
        {entries.map((entry) => (
          <li key={entry.entry_id}>
            <a href={sessionHref(session, entry.entry_id)}>
              <span class="hidden-speaker">{entry.message === undefined ? "Note" : inert(speaker(entry.message))}</span>
              <span class="ellipsis">{inert(previewOf(entry))}</span>
            </a>
            <SaidAt time={entry.message?.timestamp ?? entry.timestamp} />
          </li>
        ))}
      </ol>
    </>
  );
}

function SaidAt({ time }: { time: number | undefined }) {
  return time === undefined || time <= 0 ? null : <time dateTime={new Date(time).toISOString()}>{clockTime(time)}</time>;
}

/** The entry that a compaction keeps first; nothing where it keeps none. */
function firstKeptBy(custom: CustomPayload): string | undefined {
  const { first_kept_entry_id: kept } = dataOf(custom);
  return typeof kept === "string" && kept !== "" ? kept : undefined;
}

/** Where the part of a path begins that the model reads as it is: behind what the newest compaction hides. */
export function firstKept(items: PathItem[]): string | undefined {
  const custom = items.findLast((item) => item.custom?.custom_type === COMPACTION)?.custom;
  return custom === undefined ? undefined : firstKeptBy(custom);
}

/** What an entry of a path hides; read when it is shown. */
export function HiddenPath({ session, entry, custom }: { session: string; entry: string; custom: CustomPayload }) {
  const [part, setPart] = useState<HiddenPart | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  useEffect(() => {
    const work = new AbortController();
    hiddenBy(session, entry, firstKeptBy(custom), work.signal).then(setPart, (error: unknown) => {
      if (!isAbort(error)) {
        setProblem(describe(error));
      }
    });
    return () => work.abort();
  }, [session, entry]);
  return (
    <section class="hidden-part">
      <h3>What it hides</h3>
      {problem !== undefined && <p class="bad">{problem}</p>}
      {part === undefined ? problem === undefined && <p class="muted">Loading …</p> : <HiddenEntries session={session} entries={part.items} hasMore={part.hasMore} />}
    </section>
  );
}

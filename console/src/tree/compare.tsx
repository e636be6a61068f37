// Two branches side by side, from where they part.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getJson, isAbort, isTransient, sessionPath } from "../api/client";
import { readSession } from "../api/session";
import type { Comparison, PathItem, SessionDetails, SessionMeta } from "../api/types";
import { sessionHref, treeHref } from "../router";
import { messageAsMarkdown } from "../transcript/as_markdown";
import { grouped } from "../transcript/groups";
import { SessionHead } from "../transcript/head";
import { EntryView } from "../transcript/message";
import { setLeaf } from "../transcript/writing";
import { copyText } from "../ui/clipboard";
import { counted } from "../ui/format";
import type { MenuItem } from "../ui/menu";
import { ErrorState, Loading } from "../ui/states";
import { useReturn } from "../ui/use_return";

interface CompareProps {
  session: string;
  left: string;
  right: string;
}

interface Compared {
  meta: SessionMeta;
  details: SessionDetails | undefined;
  comparison: Comparison;
  activeLeaf: string | undefined;
  /** The ends that are on the active path. */
  activeEnds: ReadonlySet<string>;
}

const NO_SUB_AGENTS = new Map<string, never>();

/** Entries of each branch that are shown at most. */
const SHOWN_MAX = 200;

export function CompareView({ session, left, right }: CompareProps) {
  const [found, setFound] = useState<Compared>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const work = new AbortController();
    load({ session, left, right }, work.signal).then(
      (compared) => {
        setFound(compared);
        setError(undefined);
      },
      (failure: unknown) => isAbort(failure) || setError(failure),
    );
    return () => work.abort();
  }, [round]);
  const readAgain = () => setRound((now) => now + 1);
  useReturn(readAgain);
  if (error !== undefined && !(isTransient(error) && found !== undefined)) {
    return <ErrorState error={error} isView session={session} onRetry={readAgain} />;
  }
  if (found === undefined) {
    return <Loading />;
  }
  const { comparison } = found;
  return (
    <div class="transcript">
      <SessionHead meta={found.meta} details={found.details} leaf={left} view="compare" />
      <div class="compare-note">
        <p>
          {comparison.common_entry_id === undefined ? (
            "These branches share nothing."
          ) : (
            <>
              Two branches from where they part, after <a href={sessionHref(session, comparison.common_entry_id)}>the last entry that both have</a>.
            </>
          )}
        </p>
        <a class="button button-small" href={treeHref(session)}>
          Back to the tree
        </a>
      </div>
      <div class="compare">
        <Branch found={found} name="Left branch" end={left} side={comparison.left} />
        <Branch found={found} name="Right branch" end={right} side={comparison.right} />
      </div>
    </div>
  );
}

function Branch({ found, name, end, side }: { found: Compared; name: string; end: string; side: Comparison["left"] }) {
  const { session_id: session } = found.meta;
  const groups = useMemo(() => grouped(side.entries), [side]);
  const actionsFor = (item: PathItem): MenuItem[] => [
    { label: "Copy as Markdown", icon: "copy", onPick: () => void copyText(item.message === undefined ? "" : messageAsMarkdown(item.message), "the message") },
    { label: "Copy link", icon: "link", onPick: () => void copyText(new URL(sessionHref(session, item.entry_id), location.href).href, "the link") },
    { label: "Continue from here", icon: "branch", onPick: () => void setLeaf(session, item.entry_id, found.activeLeaf) },
  ];
  return (
    <section class="compare-branch" aria-label={name} tabIndex={0}>
      <div class="compare-head">
        <h2>{name}</h2>
        {found.activeEnds.has(end) && <span class="tag tag-done">active</span>}
        <span class="muted">{side.count === 0 ? "ends where they part" : counted(side.count, "entry", "entries")}</span>
        <a class="button button-small" href={sessionHref(session, end)}>
          Read
        </a>
      </div>
      {groups.map((group) => (
        <EntryView key={group.item.entry_id} session={session} group={group} isStreaming={false} isTarget={false} subAgents={NO_SUB_AGENTS} actionsFor={actionsFor} />
      ))}
      {side.count > side.entries.length && (
        <p class="muted list-note">
          The first {side.entries.length} are shown. <a href={sessionHref(session, end)}>Read the branch</a> for the others.
        </p>
      )}
    </section>
  );
}

async function load({ session, left, right }: CompareProps, signal: AbortSignal): Promise<Compared> {
  const compare = (one: string, other: string, limit: number) => getJson<Comparison>(sessionPath(session, "compare"), { left: one, right: other, limit }, signal);
  const [{ meta, details, active_leaf: activeLeaf }, comparison] = await Promise.all([readSession(session, signal), compare(left, right, SHOWN_MAX)]);
  // An end is on the active path if it has nothing that the path does not have.
  const isActive = async (end: string) => activeLeaf !== undefined && (await compare(activeLeaf, end, 1)).right.count === 0;
  const ends = [left, right];
  const active = await Promise.all(ends.map(isActive));
  return { meta, details, comparison, activeLeaf, activeEnds: new Set(ends.filter((_, at) => active[at])) };
}

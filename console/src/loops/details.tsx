// Everything that is known about one loop.

import { useEffect, useState } from "preact/hooks";
import { getJson, sessionPath } from "../api/client";
import type { LoopCompaction, LoopSummary, LoopUsage } from "../api/loops";
import { loopsHref, sessionHref } from "../router";
import { HiddenEntries } from "../transcript/hidden";
import { count, counted, duration, exactTime } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";
import { hiddenOf, type LoopRow } from "./timeline";

interface DetailsProps {
  session: string;
  row: LoopRow;
  byId: ReadonlyMap<string, LoopRow>;
  titles: ReadonlyMap<string, string>;
  onSelect: (row: LoopRow) => void;
}

export function LoopDetails({ session, row, byId, titles, onSelect }: DetailsProps) {
  const { loop } = row;
  const lastEntry = row.entries.at(-1);
  return (
    <>
      <h2>Loop {row.number}</h2>
      <dl class="facts">
        <Fact name="Agent">{inert(loop.agent_id)}</Fact>
        <Fact name="Model">{inert(loop.model ?? "not said")}</Fact>
        <Fact name="State">{STATES[loop.status]}</Fact>
        <Fact name="Began">{exactTime(row.start)}</Fact>
        <Fact name="Took">{duration(row.end - row.start)}</Fact>
        <Fact name="Tokens">{tokens(loop.usage)}</Fact>
        <Origin loop={loop} byId={byId} onSelect={onSelect} />
      </dl>
      {loop.rejection !== undefined && <p class="bad plain">{inert(loop.rejection)}</p>}
      {lastEntry !== undefined && (
        <a class="button loops-read" href={sessionHref(session, lastEntry.entry_id)}>
          Read in the transcript
        </a>
      )}
      <Chain session={session} row={row} byId={byId} onSelect={onSelect} />
      <Turns session={session} row={row} />
      {loop.group !== undefined && <Choice loop={loop} byId={byId} />}
      {loop.compaction !== undefined && <Compaction session={session} row={row} compaction={loop.compaction} />}
      {loop.spawned.length > 0 && (
        <section>
          <h3>Sub-agents</h3>
          <ul class="plain-list">
            {loop.spawned.map((spawn) => (
              <li key={spawn.loop_id}>
                {spawn.session_id === "" ? "not known yet" : <a href={loopsHref(spawn.session_id)}>{inert(titles.get(spawn.session_id) ?? spawn.session_id)}</a>}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const STATES: Record<LoopSummary["status"], string> = {
  pending: "announced, not started",
  running: "running",
  completed: "completed",
  rejected: "its input was refused",
  aborted: "broken off before its end",
};

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

const ORIGINS: Record<LoopSummary["continuation"], string> = {
  initial: "Follows",
  default: "Follows",
  rerun: "Tries again",
  branch: "Branches from",
  compaction: "Compacts",
};

function Origin({ loop, byId, onSelect }: Pick<DetailsProps, "byId" | "onSelect"> & { loop: LoopSummary }) {
  const parent = byId.get(loop.parent_loop_id ?? "");
  if (parent === undefined) {
    return loop.parent_loop_id === undefined ? null : <Fact name="Spawned by">a loop of another session</Fact>;
  }
  return (
    <Fact name={ORIGINS[loop.continuation]}>
      <button type="button" class="link" onClick={() => onSelect(parent)}>
        loop {parent.number}
      </button>
      {loop.tag !== undefined && <span class="muted"> {inert(loop.tag)}</span>}
    </Fact>
  );
}

/** Of a long way, the first loop and the last ones are named. */
const STEPS_SHOWN = 20;

/** The loops from the first to this one; of a parallel group only the chosen one. */
function Chain({ session, row, byId, onSelect }: Omit<DetailsProps, "titles">) {
  const [ids, setIds] = useState<string[]>([]);
  useEffect(() => {
    const work = new AbortController();
    getJson<{ loop_ids: string[] }>(sessionPath(session, "loops", row.loop.loop_id, "chain"), {}, work.signal).then(
      (chain) => setIds(chain.loop_ids),
      () => undefined,
    );
    return () => work.abort();
  }, [session, row.loop.loop_id]);
  const all = ids.flatMap((id) => byId.get(id) ?? []);
  if (all.length < 2) {
    return null;
  }
  const left = Math.max(0, all.length - STEPS_SHOWN);
  const rows = left === 0 ? all : [...all.slice(0, 1), ...all.slice(left + 1)];
  return (
    <section>
      <h3>How it came to this</h3>
      <p class="loops-chain">
        {rows.map((step, at) => (
          <span key={step.number}>
            {at > 0 && (at === 1 && left > 0 ? ` → ${counted(left, "loop")} → ` : " → ")}
            <button type="button" class="link" aria-current={step === row ? "step" : undefined} onClick={() => onSelect(step)}>
              {step.number}
            </button>
          </span>
        ))}
      </p>
    </section>
  );
}

function Turns({ session, row: { loop, calls } }: { session: string; row: LoopRow }) {
  if (loop.turns.length === 0 && calls.length === 0) {
    return null;
  }
  return (
    <section>
      <h3>Turns</h3>
      <ol class="turns">
        {loop.turns.map((turn) => (
          <li key={turn.turn_index}>
            <span class="turn-head">
              {duration(turn.ended_at - turn.started_at)} · <span class="muted">{tokens(turn.usage)}</span>
            </span>
            <ul class="plain-list">
              {calls
                .filter((call) => call.turn === turn.turn_index)
                .map((call) => (
                  <li key={call.id} class={call.hasFailed ? "bad" : ""}>
                    <a href={sessionHref(session, call.entry)}>{inert(call.tool)}</a> {call.isOpen ? "no result" : duration(call.end - call.start)}
                    {call.hasFailed && ", failed"}
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Choice({ loop, byId }: { loop: LoopSummary; byId: ReadonlyMap<string, LoopRow> }) {
  const winner = byId.get(loop.group?.winner ?? "");
  const judged = loop.group?.evaluation_usage.total_tokens ?? 0;
  return (
    <section>
      <h3>Parallel group</h3>
      <p>
        {counted(loop.group?.loop_ids.length ?? 0, "loop")} from the same beginning; {winner === undefined ? "none was chosen yet" : `loop ${winner.number} was chosen`}.
        {judged > 0 && ` Choosing took ${count(judged)} tokens.`}
      </p>
    </section>
  );
}

/** What stands for messages of the loop, and which ones. */
function Compaction({ session, row, compaction }: { session: string; row: LoopRow; compaction: LoopCompaction }) {
  const hidden = hiddenOf(row);
  return (
    <section>
      <h3>Compacted</h3>
      <p class="muted">
        Since {exactTime(compaction.created_at)} this stands for {counted(compaction.hidden_messages, "message")} in the context:
      </p>
      <blockquote class="plain">{inert(compaction.summary)}</blockquote>
      {hidden.length > 0 && (
        <details class="fold">
          <summary class="fold-head">
            <Icon name="chevron" />
            What it hides
          </summary>
          <div class="fold-body">
            <HiddenEntries session={session} entries={hidden} />
          </div>
        </details>
      )}
    </section>
  );
}

function tokens(usage: LoopUsage): string {
  const cached = usage.cache_read > 0 ? `, ${count(usage.cache_read)} from the cache` : "";
  return `${count(usage.input)}\u00a0in${cached}, ${count(usage.output)}\u00a0out`;
}

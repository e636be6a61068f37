import { useEffect, useMemo, useState } from "preact/hooks";
import { SessionHead } from "../transcript/head";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useStore } from "../ui/use_store";
import { Axis } from "./axis";
import { ZoomControls } from "./zoom_controls";
import { Family } from "./family";
import { LoopDetails } from "./details";
import { useReplay } from "./replay";
import { ReplayControls, ReplayedMessages } from "./replay_view";
import { LoopsSource, type LoopsState } from "./source";
import { type LoopRow, rowsOf } from "./timeline";
import { Tracks } from "./tracks";
import { Sight, useZoom } from "./zoom";

export function LoopsView({ session }: { session: string }) {
  const source = useMemo(() => new LoopsSource(session), [session]);
  useEffect(() => () => source.close(), [source]);
  const state = useStore(source.state);
  if (state.error !== undefined && state.loops === undefined) {
    return <ErrorState error={state.error} isView onRetry={() => source.refresh()} />;
  }
  if (state.loops === undefined || state.meta === undefined) {
    return <Loading />;
  }
  return (
    <div class="loops">
      <SessionHead meta={state.meta} details={state.details} leaf={state.activeLeaf} view="loops" />
      {state.loops.length === 0 ? <NotRecorded /> : <LoopsBody session={session} source={source} state={state} loops={state.loops} />}
    </div>
  );
}

function NotRecorded() {
  return (
    <EmptyState title="No loops were recorded">
      <p>Loops come from the events of an agent. Send them to this server:</p>
      <pre class="code" tabIndex={0}>{`my-agent --events | curl --data-binary @- \\\n  -H 'content-type: application/x-ndjson' ${location.origin}/v1/record`}</pre>
    </EmptyState>
  );
}

interface BodyProps {
  session: string;
  source: LoopsSource;
  state: LoopsState;
  loops: NonNullable<LoopsState["loops"]>;
}

function LoopsBody({ session, source, state, loops }: BodyProps) {
  const [cutsPauses, setCutsPauses] = useState(true);
  const [selectedId, setSelectedId] = useState<string>();
  const [brought, setBrought] = useState<{ row: LoopRow }>();
  const [shown, setShown] = useState<LoopRow[]>([]);
  const rows = useMemo(() => rowsOf(loops, state.entries, Date.now()), [loops, state.entries]);
  const axis = useMemo(() => new Axis(rows, cutsPauses), [rows, cutsPauses]);
  const replay = useReplay(axis);
  const zoom = useZoom(axis);
  const sight = useMemo(() => new Sight(axis, zoom.part), [axis, zoom.part]);
  const byId = useMemo(() => new Map(rows.map((row) => [row.loop.loop_id, row])), [rows]);
  const selected: LoopRow | undefined = byId.get(selectedId ?? "") ?? rows[0];
  const time = axis.time(replay.place);
  const replayed = replay.place < 1 ? rows.findLast((row) => row.start <= time) : undefined;
  const select = (row: LoopRow) => setSelectedId(row.loop.loop_id);
  const bring = (row: LoopRow | undefined) => {
    if (row !== undefined) {
      select(row);
      setBrought({ row });
      zoom.bring(axis.place(row.start));
    }
  };
  useEffect(() => {
    const looked = [selected, replayed, ...shown].filter((row) => row !== undefined);
    source.want(looked.map(saidIn));
  }, [source, selected, replayed, shown]);
  return (
    <div class="loops-body">
      <div class="loops-main">
        <ReplayControls replay={replay} axis={axis} cutsPauses={cutsPauses} onCutsPauses={setCutsPauses} />
        <Tracks rows={rows} byId={byId} sight={sight} zoom={zoom} place={replay.place} selected={selected} onSelect={select} brought={brought} onRows={setShown}>
          <ZoomControls zoom={zoom} sight={sight} rows={rows} selected={selected} onBring={bring} loopsSoFar={state.loopsSoFar} isReading={state.isReading} onRetry={state.error === undefined ? undefined : () => source.refresh()} />
        </Tracks>
        {replay.place < 1 && <ReplayedMessages session={session} entries={state.entries} byId={byId} time={time} isReading={state.isReading} />}
        {state.spawns !== undefined && state.spawns.spawns.length > 0 && <Family session={session} spawns={state.spawns} titles={state.titles} own={state.meta} />}
      </div>
      <aside class="loops-side" aria-label="Selected loop" aria-live="polite">
        {selected !== undefined && <LoopDetails key={selected.loop.loop_id} session={session} row={selected} byId={byId} titles={state.titles} onSelect={bring} />}
      </aside>
    </div>
  );
}

/** When the entries of a loop were said. A loop that was broken off said no more after its last turn than one page holds. */
function saidIn({ loop, start }: LoopRow): { start: number; end: number } {
  const last = loop.status === "running" ? Infinity : Math.max(start, ...loop.turns.map((turn) => turn.ended_at));
  return { start, end: loop.ended_at ?? last };
}

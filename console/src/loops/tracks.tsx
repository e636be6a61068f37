// The timeline itself: a row for each loop, with its turns and its calls of tools.

import { clockTime, duration, secondTime, shortDay } from "../ui/format";
import { inert } from "../ui/inert";
import type { Axis, Span, Tick } from "./axis";
import { grouped, type LoopRow, type RowGroup } from "./timeline";

interface TracksProps {
  rows: LoopRow[];
  byId: ReadonlyMap<string, LoopRow>;
  axis: Axis;
  ticks: Tick[];
  place: number;
  selected: LoopRow | undefined;
  onSelect: (row: LoopRow) => void;
}

const TICKS_MAX = 6;

export function Tracks({ rows, ...props }: Omit<TracksProps, "ticks">) {
  const { axis } = props;
  const ticks = axis.ticks(TICKS_MAX);
  return (
    <div class="tracks">
      <div class="track-row track-axis" aria-hidden="true">
        <span class="track-name muted">Time of day</span>
        <div class="track">
          {ticks.map(({ at, time }, index) => (
            <span key={time} class="tick" style={{ left: percent(at) }}>
              {dayBefore(ticks[index - 1], time, axis) + secondTime(time)}
            </span>
          ))}
        </div>
      </div>
      {grouped(rows).map((group) => (
        <TrackGroup key={group.rows[0]?.loop.loop_id} {...props} ticks={ticks} group={group} />
      ))}
      <ul class="legend tracks-legend" aria-hidden="true">
        <li>
          <span class="track-mark track-mark-turn" /> turn
        </li>
        <li>
          <span class="track-mark track-mark-call" /> call of a tool
        </li>
        <li>
          <span class="track-mark track-mark-failed" /> call that failed
        </li>
      </ul>
      {axis.cuts.length > 0 && (
        <p class="muted tracks-note">
          The striped places are pauses in which nothing ran: {axis.cuts.map((cut) => duration(cut.ms)).join(", ")}. They are not drawn at their length.
        </p>
      )}
    </div>
  );
}

/** The day of a time, where it is another than that of the time before it on the axis. */
function dayBefore(before: Tick | undefined, time: number, axis: Axis): string {
  const isNews = before === undefined ? shortDay(axis.time(0)) !== shortDay(axis.time(1)) : shortDay(before.time) !== shortDay(time);
  return isNews ? `${shortDay(time)}, ` : "";
}

function TrackGroup({ group: { group, rows }, ...props }: Omit<TracksProps, "rows"> & { group: RowGroup }) {
  if (group === undefined) {
    return <>{rows.map((row) => <TrackRow key={row.loop.loop_id} row={row} {...props} />)}</>;
  }
  const winner = props.byId.get(group.winner ?? "");
  return (
    <section class="track-group" aria-label="Parallel group">
      <h2 class="track-group-head">
        Parallel group: {winner === undefined ? "none was chosen yet" : `loop ${winner.number} was chosen`}
      </h2>
      {rows.map((row) => <TrackRow key={row.loop.loop_id} row={row} isWinner={row === winner} {...props} />)}
    </section>
  );
}

function TrackRow({ row, isWinner = false, axis, ticks, place, selected, onSelect }: Omit<TracksProps, "rows"> & { row: LoopRow; isWinner?: boolean }) {
  const { loop } = row;
  return (
    <div class="track-row" data-selected={row === selected ? "" : undefined} data-loop={row.number}>
      <button type="button" class="track-name" aria-pressed={row === selected} onClick={() => onSelect(row)}>
        <span class="track-title">
          <strong>Loop {row.number}</strong>
          {loop.continuation in KINDS && <span class="tag">{KINDS[loop.continuation]}</span>}
          {isWinner && <span class="tag tag-done">chosen</span>}
          {loop.compaction !== undefined && <span class="tag">compacted</span>}
          {STATES[loop.status] !== undefined && <span class={`tag ${loop.status === "running" ? "tag-working" : "tag-error"}`}>{STATES[loop.status]}</span>}
        </span>
        <span class="muted ellipsis">{inert([loop.model, duration(row.end - row.start)].filter((part) => part !== undefined).join(" · "))}</span>
      </button>
      <div class="track" style={{ minHeight: `${CALLS_TOP_REM + Math.max(2, lanesOf(row)) * LANE_REM}rem` }} onClick={() => onSelect(row)}>
        {ticks.map(({ at }) => <span key={at} class="track-grid" style={{ left: percent(at) }} />)}
        {axis.cuts.map((cut) => <span key={cut.at} class="track-cut" style={{ left: percent(cut.at) }} />)}
        <Bar axis={axis} place={place} span={row} kind={`bar-loop bar-${loop.status}`} title={`Loop ${row.number}, from ${clockTime(row.start)}, ${duration(row.end - row.start)}`} />
        {loop.turns.map((turn) => (
          <Bar
            key={turn.turn_index}
            axis={axis}
            place={place}
            span={{ start: turn.started_at, end: turn.ended_at }}
            kind="bar-turn"
            title={`Turn ${turn.turn_index + 1}, ${duration(turn.ended_at - turn.started_at)}`}
          />
        ))}
        {row.calls.map((call) => (
          <Bar key={`${call.entry} ${call.id}`} axis={axis} place={place} span={call} kind={call.hasFailed ? "bar-call bar-failed" : "bar-call"} lane={call.lane % LANES_MAX} title={`${call.tool}, ${duration(call.end - call.start)}`} />
        ))}
        {place < 1 && <span class="playhead" style={{ left: percent(place) }} />}
      </div>
    </div>
  );
}

/** Calls that run at the same time are drawn below each other, up to this many. */
const LANES_MAX = 8;
const LANE_REM = 0.55;
const CALLS_TOP_REM = 1.85;

function lanesOf({ calls }: LoopRow): number {
  return Math.min(LANES_MAX, Math.max(0, ...calls.map((call) => call.lane + 1)));
}

const KINDS: Record<string, string> = { rerun: "rerun", branch: "branch", compaction: "compaction" };
const STATES: Record<string, string> = { pending: "not started", running: "running", rejected: "refused", aborted: "broken off" };

interface BarProps {
  axis: Axis;
  place: number;
  span: Span;
  kind: string;
  title: string;
  /** Of a call. */
  lane?: number;
}

/** A stretch of time; what is after the playhead is pale. */
function Bar({ axis, place, span, kind, title, lane }: BarProps) {
  const start = axis.place(span.start);
  const width = axis.place(span.end) - start;
  const top = lane === undefined ? "" : `${CALLS_TOP_REM + lane * LANE_REM}rem`;
  return <span class={`bar ${kind}`} data-later={start > place ? "" : undefined} title={inert(title)} style={{ left: `min(${percent(start)}, 100% - 3px)`, width: percent(width), top }} />;
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`;
}

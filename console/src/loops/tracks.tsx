// The timeline itself: a row for each loop, with its turns and its calls of tools.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { clockTime, count, duration, secondTime, shortDay } from "../ui/format";
import { Gestures } from "../ui/gestures";
import { inert } from "../ui/inert";
import type { Cut, Span, Tick } from "./axis";
import { Chunk, chunksOf } from "./chunks";
import { grouped, type LoopRow, type RowGroup } from "./timeline";
import { isLarger, type Sight, type Zoom } from "./zoom";

interface TracksProps {
  rows: LoopRow[];
  byId: ReadonlyMap<string, LoopRow>;
  sight: Sight;
  ticks: Tick[];
  /** The pauses that are drawn in every row. */
  cuts: Cut[];
  place: number;
  selected: LoopRow | undefined;
  onSelect: (row: LoopRow) => void;
}

type AllTracksProps = Omit<TracksProps, "ticks" | "cuts"> & {
  zoom: Zoom;
  /** The row that is scrolled into sight, when it changes. */
  brought: { row: LoopRow } | undefined;
  /** The rows that are in the page. */
  onRows: (rows: LoopRow[]) => void;
  /** What stands above the axis, and stays in sight with it. */
  children: ComponentChildren;
};

const TICKS_MAX = 6;
/** With more pauses in sight, only the axis shows them. */
const ROW_CUTS_MAX = 40;
/** Pauses that are closer to each other are the same line of a screen. */
const CUT_DISTANCE_MIN = 0.001;
const WHEEL_SCALE = 1.3;

export function Tracks({ rows, zoom, brought, onRows, children, ...props }: AllTracksProps) {
  const { sight } = props;
  const box = useRef<HTMLDivElement>(null);
  const axisTrack = useRef<HTMLDivElement>(null);
  const ticks = sight.ticks(TICKS_MAX);
  const seen = useMemo(() => cutsInSight(sight), [sight.axis, sight.part]);
  const cuts = seen.length <= ROW_CUTS_MAX ? seen : [];
  const chunks = useMemo(() => chunksOf(grouped(rows)), [rows]);
  const [shown, setShown] = useState<ReadonlySet<number>>(new Set([0]));
  const broughtAt = brought === undefined ? -1 : chunks.findIndex((chunk) => chunk.some((group) => group.rows.includes(brought.row)));
  useLayoutEffect(() => {
    if (brought !== undefined) {
      box.current?.querySelector(`[data-loop="${brought.row.number}"]`)?.scrollIntoView({ block: "nearest" });
    }
  }, [brought]);
  useEffect(() => onRows(chunks.filter((_, at) => shown.has(at) || at === broughtAt).flatMap((chunk) => chunk.flatMap((group) => group.rows))), [chunks, shown, broughtAt]);
  useWheel(box, axisTrack, zoom);
  const gestures = useRef(new Gestures()).current;
  const onPointerMove = (event: PointerEvent) => {
    const track = axisTrack.current?.getBoundingClientRect() ?? new DOMRect(0, 0, 1, 1);
    gestures.move(event, {
      onMove: (dx) => zoom.move(-dx / track.width),
      onPinch: (factor, at) => zoom.scale(factor, (at.x - track.left) / track.width),
    });
  };
  /** The click at the end of a drag chooses nothing; one of the keyboard has no count. */
  const onClick = (event: MouseEvent) => {
    if (gestures.hasDragged && event.detail > 0) {
      event.stopPropagation();
    }
  };
  return (
    <div
      ref={box}
      class="tracks"
      data-zoomed={isLarger(zoom) ? "" : undefined}
      onClickCapture={onClick}
      onPointerDown={(event) => gestures.down(event)}
      onPointerMove={onPointerMove}
      onPointerUp={(event) => gestures.up(event)}
      onPointerCancel={(event) => gestures.up(event)}
    >
      <div class="tracks-head">
        {children}
        <div class="track-row track-axis" aria-hidden="true">
          <span class="track-name muted">Time of day</span>
          <div ref={axisTrack} class="track">
            {ticks.map(({ at, time }, index) => (
              <span key={time} class="tick" style={{ left: percent(at) }}>
                {dayBefore(ticks[index - 1], time, sight) + secondTime(time)}
              </span>
            ))}
            <CutMarks cuts={seen} sight={sight} />
          </div>
        </div>
      </div>
      {chunks.map((chunk, at) => (
        <Chunk key={at} at={at} isBrought={at === broughtAt} groups={chunk} onShown={setShown}>
          {() => chunk.map((group) => <TrackGroup key={group.rows[0]?.loop.loop_id} {...props} ticks={ticks} cuts={cuts} group={group} />)}
        </Chunk>
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
      {sight.axis.cuts.length > 0 && <p class="muted tracks-note">The striped places are pauses in which nothing ran: {pauses(sight.axis.cuts)}. They are not drawn at their length.</p>}
    </div>
  );
}

/** With ctrl the wheel changes the size, and to the side it moves. */
function useWheel(box: { current: HTMLElement | null }, track: { current: HTMLElement | null }, zoom: Zoom): void {
  const now = useRef(zoom);
  now.current = zoom;
  useEffect(() => {
    const element = box.current;
    const onWheel = (event: WheelEvent) => {
      const { left, width } = track.current?.getBoundingClientRect() ?? new DOMRect(0, 0, 1, 1);
      const across = event.deltaX === 0 && event.shiftKey ? event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        now.current.scale(event.deltaY < 0 ? WHEEL_SCALE : 1 / WHEEL_SCALE, Math.max(0, Math.min(1, (event.clientX - left) / width)));
      } else if (isLarger(now.current) && (Math.abs(across) > Math.abs(event.deltaY) || event.shiftKey)) {
        event.preventDefault();
        now.current.move(across / width);
      }
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);
}

/** The pauses in sight, one for each line of the screen. */
function cutsInSight(sight: Sight): Cut[] {
  const seen: Cut[] = [];
  let last = -Infinity;
  for (const cut of sight.axis.cuts) {
    const at = sight.seen(cut.at);
    if (sight.seen(cut.at + cut.width / 2) >= 0 && sight.seen(cut.at - cut.width / 2) <= 1 && at - last >= CUT_DISTANCE_MIN) {
      seen.push(cut);
      last = at;
    }
  }
  return seen;
}

function CutMarks({ cuts, sight }: { cuts: Cut[]; sight: Sight }) {
  const part = sight.part.to - sight.part.from;
  return <>{cuts.map((cut) => <span key={cut.at} class="track-cut" style={{ left: percent(sight.seen(cut.at)), width: percent(cut.width / part) }} />)}</>;
}

const PAUSES_NAMED = 6;

function pauses(cuts: Cut[]): string {
  if (cuts.length <= PAUSES_NAMED) {
    return cuts.map((cut) => duration(cut.ms)).join(", ");
  }
  return `${count(cuts.length)} of them, the longest ${duration(cuts.reduce((most, cut) => Math.max(most, cut.ms), 0))}`;
}

/** The day of a time, where it is another than that of the time before it on the axis. */
function dayBefore(before: Tick | undefined, time: number, sight: Sight): string {
  const isNews = before === undefined ? shortDay(sight.time(0)) !== shortDay(sight.time(1)) : shortDay(before.time) !== shortDay(time);
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

function TrackRow({ row, isWinner = false, sight, ticks, cuts, place, selected, onSelect }: Omit<TracksProps, "rows"> & { row: LoopRow; isWinner?: boolean }) {
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
        <CutMarks cuts={cuts} sight={sight} />
        <Bar sight={sight} place={place} span={row} kind={`bar-loop bar-${loop.status}`} title={`Loop ${row.number}, from ${clockTime(row.start)}, ${duration(row.end - row.start)}`} />
        {loop.turns.map((turn) => (
          <Bar
            key={turn.turn_index}
            sight={sight}
            place={place}
            span={{ start: turn.started_at, end: turn.ended_at }}
            kind="bar-turn"
            title={`Turn ${turn.turn_index + 1}, ${duration(turn.ended_at - turn.started_at)}`}
          />
        ))}
        {row.calls.map((call) => (
          <Bar key={`${call.entry} ${call.id}`} sight={sight} place={place} span={call} kind={call.hasFailed ? "bar-call bar-failed" : "bar-call"} lane={call.lane % LANES_MAX} title={`${call.tool}, ${duration(call.end - call.start)}`} />
        ))}
        {place < 1 && sight.part.from <= place && place <= sight.part.to && <span class="playhead" style={{ left: percent(sight.seen(place)) }} />}
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
  sight: Sight;
  place: number;
  span: Span;
  kind: string;
  title: string;
  /** Of a call. */
  lane?: number;
}

/** A stretch of time; what is after the playhead is pale. */
function Bar({ sight, place, span, kind, title, lane }: BarProps) {
  const seen = sight.stretch(span);
  if (seen === undefined) {
    return null;
  }
  const top = lane === undefined ? "" : `${CALLS_TOP_REM + lane * LANE_REM}rem`;
  const isLater = sight.axis.place(span.start) > place;
  return <span class={`bar ${kind}`} data-later={isLater ? "" : undefined} title={inert(title)} style={{ left: `min(${percent(seen.from)}, 100% - 3px)`, width: percent(seen.width), top }} />;
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`;
}

import { count, counted, duration, secondTime } from "../ui/format";
import { useKeyList, useShortcuts } from "../ui/keys";
import type { LoopRow } from "./timeline";
import { isLarger, type Sight, type Zoom } from "./zoom";

interface ZoomControlsProps {
  zoom: Zoom;
  sight: Sight;
  rows: LoopRow[];
  selected: LoopRow | undefined;
  /** Selects a loop and scrolls to it. */
  onBring: (row: LoopRow | undefined) => void;
  loopsSoFar: number | undefined;
  isReading: boolean;
  /** Reads what could not be read; nothing where nothing is missing. */
  onRetry: (() => void) | undefined;
}

const SCALE_STEP = 1.5;
const MOVE_STEP = 0.25;

/** How large the time is drawn, and ways to the first and the newest loop. */
export function ZoomControls({ zoom, sight, rows, selected, onBring, loopsSoFar, isReading, onRetry }: ZoomControlsProps) {
  const step = (by: number) => onBring(rows[(selected?.number ?? 0) - 1 + by]);
  const larger = () => zoom.scale(SCALE_STEP, anchor(sight, selected));
  const smaller = () => zoom.scale(1 / SCALE_STEP, anchor(sight, selected));
  useShortcuts([
    { key: "j", about: "Next loop", act: () => step(1) },
    { key: "k", about: "Previous loop", act: () => step(-1) },
    { key: "G", about: "Newest loop", act: () => onBring(rows.at(-1)) },
    { key: "g", about: "First loop", act: () => onBring(rows[0]) },
    { key: "+", about: "Time larger", act: larger },
    { key: "-", about: "Time smaller", act: smaller },
    { key: "0", about: "The whole time", act: zoom.reset },
    { key: "ArrowLeft", about: "Earlier and later, where the time is larger", act: () => zoom.move(-MOVE_STEP) },
    { key: "ArrowRight", about: "Earlier and later, where the time is larger", act: () => zoom.move(MOVE_STEP) },
  ]);
  useKeyList([{ key: "Ctrl + wheel", about: "Time larger or smaller" }]);
  const isWhole = !isLarger(zoom);
  return (
    <div class="zoom" role="group" aria-label="Timeline">
      <button type="button" class="button button-small" aria-label="Time larger" onClick={larger}>
        +
      </button>
      <button type="button" class="button button-small" aria-label="Time smaller" disabled={isWhole} onClick={smaller}>
        −
      </button>
      <button type="button" class="button button-small" aria-label="Whole time" disabled={isWhole} onClick={zoom.reset}>
        Whole
      </button>
      <span class="zoom-seen muted">{isWhole ? `${counted(rows.length, "loop")}${loopsSoFar === undefined ? "" : " shown"}` : inSight(sight)}</span>
      <span class="zoom-reading muted" role="status">
        {onRetry !== undefined ? (
          <button type="button" class="link" onClick={onRetry}>
            Not everything could be read. Try again
          </button>
        ) : (
          progress(loopsSoFar, isReading)
        )}
      </span>
      <span class="zoom-ends">
        <button type="button" class="button button-small" aria-label="First loop" onClick={() => onBring(rows[0])}>
          First
        </button>
        <button type="button" class="button button-small" aria-label="Newest loop" onClick={() => onBring(rows.at(-1))}>
          Newest
        </button>
      </span>
    </div>
  );
}

function progress(loopsSoFar: number | undefined, isReading: boolean): string {
  if (loopsSoFar !== undefined) {
    return `${count(loopsSoFar)} loops read so far …`;
  }
  return isReading ? "Loading the calls of tools …" : "";
}

/** What is nearer to an edge than this stays there. */
const EDGE = 0.03;

/** The chosen loop stays where it is, if it is in sight. */
function anchor(sight: Sight, selected: LoopRow | undefined): number {
  const at = selected === undefined ? -1 : sight.place((selected.start + selected.end) / 2);
  if (at < 0 || at > 1) {
    return 0.5;
  }
  return at < EDGE ? 0 : at > 1 - EDGE ? 1 : at;
}

function inSight(sight: Sight): string {
  const [from, to] = [sight.time(0), sight.time(1)];
  return `${secondTime(from)} – ${secondTime(to)}, ${duration(to - from)}`;
}

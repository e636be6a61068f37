// The time axis of a recording. Pauses in which nothing ran may be cut, and every cut is shown.

export interface Span {
  start: number;
  end: number;
}

/** A pause that is not drawn at its length. */
export interface Cut {
  /** Where it is, from 0 to 1. */
  at: number;
  /** How long it took. */
  ms: number;
}

export interface Tick {
  at: number;
  time: number;
}

/** A piece of the axis on which time passes evenly. */
interface Piece extends Span {
  /** Milliseconds of the axis before it. */
  before: number;
}

/** A pause is cut when it takes more than this part of what is drawn. */
const CUT_PART = 0.1;
/** The part of the axis that a cut takes. */
const CUT_WIDTH = 0.03;

export class Axis {
  readonly length: number;
  readonly cuts: Cut[] = [];
  private readonly pieces: Piece[] = [];

  constructor(spans: Span[], cutsPauses: boolean) {
    const busy = merge(spans);
    const worked = busy.reduce((sum, span) => sum + (span.end - span.start), 0);
    const cutWidth = Math.max(1, worked * CUT_WIDTH);
    const longest = cutsPauses ? Math.max(1, worked * CUT_PART) : Infinity;
    const pauses: { at: number; ms: number }[] = [];
    let length = 0;
    for (const span of busy) {
      const last = this.pieces.at(-1);
      const pause = last === undefined ? 0 : span.start - last.end;
      if (last !== undefined && pause <= longest) {
        last.end = span.end;
        length = last.before + (last.end - last.start);
        continue;
      }
      if (last !== undefined) {
        pauses.push({ at: length + cutWidth / 2, ms: pause });
        length += cutWidth;
      }
      this.pieces.push({ ...span, before: length });
      length += span.end - span.start;
    }
    this.length = Math.max(1, length);
    this.cuts.push(...pauses.map(({ at, ms }) => ({ at: at / this.length, ms })));
  }

  /** Where a time is, from 0 to 1. */
  place(time: number): number {
    let place = 0;
    for (const piece of this.pieces) {
      if (time < piece.start) {
        break;
      }
      place = piece.before + Math.min(time, piece.end) - piece.start;
    }
    return place / this.length;
  }

  /** Which time is at a place. */
  time(place: number): number {
    const wanted = place * this.length;
    let found = this.pieces[0]?.start ?? 0;
    for (const piece of this.pieces) {
      if (wanted >= piece.before) {
        found = Math.min(piece.start + (wanted - piece.before), piece.end);
      }
    }
    return found;
  }

  /** Round times, and the beginning of each piece without one, as far as there is room for their texts. */
  ticks(most: number): Tick[] {
    const step = niceStep(this.length / most);
    const ticks: Tick[] = [];
    for (const piece of this.pieces) {
      for (const time of roundTimes(piece, step)) {
        const at = this.place(time);
        const last = ticks.at(-1);
        if (at <= 1 - 1 / most && (last === undefined || at - last.at >= 1 / most)) {
          ticks.push({ at, time });
        }
      }
    }
    return ticks;
  }
}

/** The times within a piece that are round for its reader, whose days may begin at another hour than those of UTC. */
function roundTimes({ start, end }: Span, step: number): number[] {
  const shift = new Date(start).getTimezoneOffset() * 60 * SECOND;
  const times: number[] = [];
  for (let time = Math.ceil((start - shift) / step) * step + shift; time <= end; time += step) {
    times.push(time);
  }
  return times.length === 0 ? [start] : times;
}

function merge(spans: Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last !== undefined && span.start <= last.end) {
      last.end = Math.max(last.end, span.end);
    } else {
      merged.push({ ...span });
    }
  }
  return merged;
}

const SECOND = 1_000;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400].map((step) => step * SECOND);

function niceStep(least: number): number {
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / (86_400 * SECOND)) * 86_400 * SECOND;
}

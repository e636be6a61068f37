// The time axis of a recording. Pauses in which nothing ran may be cut, and every cut is shown.

export interface Span {
  start: number;
  end: number;
}

/** A part of an axis, from 0 to 1. */
export interface Part {
  from: number;
  to: number;
}

export const WHOLE: Part = { from: 0, to: 1 };

/** A pause that is not drawn at its length. */
export interface Cut {
  /** Where its middle is, from 0 to 1. */
  at: number;
  /** How much of the axis it takes. */
  width: number;
  /** How long it took. */
  ms: number;
}

export interface Tick {
  /** Where it is in the part that is seen, from 0 to 1. */
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
/** The part of the axis that a cut takes, and that all of them take together. */
const CUT_WIDTH = 0.03;
const CUTS_WIDTH = 0.3;

export class Axis {
  readonly length: number;
  readonly cuts: Cut[] = [];
  private readonly pieces: Piece[];

  constructor(spans: Span[], cutsPauses: boolean) {
    const busy = merge(spans);
    const worked = busy.reduce((sum, span) => sum + (span.end - span.start), 0);
    this.pieces = joined(busy, cutsPauses ? Math.max(1, worked * CUT_PART) : Infinity);
    const width = Math.max(1, worked * Math.min(CUT_WIDTH, CUTS_WIDTH / Math.max(1, this.pieces.length - 1)));
    let length = 0;
    for (const piece of this.pieces) {
      piece.before = length;
      length += piece.end - piece.start + width;
    }
    this.length = Math.max(1, length - width);
    for (const [at, piece] of this.pieces.entries()) {
      const last = this.pieces[at - 1];
      if (last !== undefined) {
        this.cuts.push({ at: (piece.before - width / 2) / this.length, width: width / this.length, ms: piece.start - last.end });
      }
    }
  }

  /** Where a time is, from 0 to 1. */
  place(time: number): number {
    const piece = this.lastWhere((one) => one.start <= time);
    return piece === undefined ? 0 : (piece.before + Math.min(time, piece.end) - piece.start) / this.length;
  }

  /** Which time is at a place. */
  time(place: number): number {
    const wanted = place * this.length;
    const piece = this.lastWhere((one) => one.before <= wanted) ?? this.pieces[0];
    return piece === undefined ? 0 : Math.min(piece.start + Math.max(0, wanted - piece.before), piece.end);
  }

  /** Round times, and the beginning of each piece without one, as far as there is room for their texts. */
  ticks(most: number, part: Part = WHOLE): Tick[] {
    const width = part.to - part.from;
    const step = niceStep(Math.round((this.length * width) / most));
    // Steps that fit exactly may be less by what numbers cannot tell.
    const room = 1 / most - 1e-9;
    const ticks: Tick[] = [];
    for (const piece of this.pieces) {
      const [from, to] = [part.from * this.length - piece.before, part.to * this.length - piece.before];
      const seen = { start: piece.start + Math.max(0, from), end: Math.min(piece.end, piece.start + to) };
      for (const time of seen.start <= seen.end ? roundTimes(seen, step) : []) {
        const at = (this.place(time) - part.from) / width;
        const last = ticks.at(-1);
        if (at <= 1 - room && (last === undefined || at - last.at >= room)) {
          ticks.push({ at, time });
        }
      }
    }
    return ticks;
  }

  /** The last of the pieces for which something holds that holds for all before it. */
  private lastWhere(holds: (piece: Piece) => boolean): Piece | undefined {
    let [low, high] = [0, this.pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const piece = this.pieces[middle];
      if (piece !== undefined && holds(piece)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this.pieces[low - 1];
  }
}

/** Spans with the pauses between them that are drawn at their length. */
function joined(busy: Span[], longest: number): Piece[] {
  const pieces: Piece[] = [];
  for (const span of busy) {
    const last = pieces.at(-1);
    if (last !== undefined && span.start - last.end <= longest) {
      last.end = span.end;
    } else {
      pieces.push({ ...span, before: 0 });
    }
  }
  return pieces;
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

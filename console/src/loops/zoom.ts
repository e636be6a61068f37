// Which part of the axis is seen.

import { useState } from "preact/hooks";
import { type Axis, type Part, type Span, type Tick, WHOLE } from "./axis";

/** The least time that is seen: its ticks are whole seconds. */
const SEEN_MS_MIN = 6_000;

export interface Zoom {
  part: Part;
  /** Makes what is seen larger, around a place from 0 to 1 of what is seen. */
  scale: (factor: number, at?: number) => void;
  /** Moves what is seen by a part of itself. */
  move: (by: number) => void;
  /** Brings a place of the axis into sight. */
  bring: (place: number) => void;
  reset: () => void;
}

export function useZoom(axis: Axis): Zoom {
  const [held, hold] = useState({ axis, part: WHOLE });
  const partNow = (now: typeof held) => (now.axis === axis ? now.part : carried(now.part, now.axis, axis));
  const set = (change: (part: Part) => Part) => hold((now) => ({ axis, part: change(partNow(now)) }));
  return {
    part: partNow(held),
    scale: (factor, at = 0.5) => set((part) => scaled(part, factor, at, SEEN_MS_MIN / axis.length)),
    move: (by) => set((part) => within(part.from + by * (part.to - part.from), part.to - part.from)),
    bring: (place) => set((part) => (place >= part.from && place <= part.to ? part : within(place - (part.to - part.from) / 2, part.to - part.from))),
    reset: () => set(() => WHOLE),
  };
}

/** Whether only a part of the time is seen. */
export function isLarger({ part }: Pick<Zoom, "part">): boolean {
  return part.to - part.from < 1;
}

/** A part that is `factor` times as large to look at, with the same time at the place. */
export function scaled(part: Part, factor: number, at: number, least: number): Part {
  const width = part.to - part.from;
  const wanted = Math.min(1, Math.max(width / factor, Math.min(1, least)));
  return within(part.from + at * (width - wanted), wanted);
}

function within(from: number, width: number): Part {
  const start = Math.max(0, Math.min(from, 1 - width));
  return width >= 1 ? WHOLE : { from: start, to: start + width };
}

/** The part with the same times on another axis. */
function carried(part: Part, from: Axis, to: Axis): Part {
  if (part.from <= 0 && part.to >= 1) {
    return WHOLE;
  }
  const [start, end] = [to.place(from.time(part.from)), to.place(from.time(part.to))];
  return within(start, Math.max(end - start, Math.min(1, SEEN_MS_MIN / to.length)));
}

/** The axis as it is seen: places are from 0 to 1 of the part that is in sight. */
export class Sight {
  constructor(
    readonly axis: Axis,
    readonly part: Part,
  ) {}

  place(time: number): number {
    return this.seen(this.axis.place(time));
  }

  /** Where a place of the whole axis is seen. */
  seen(place: number): number {
    return (place - this.part.from) / (this.part.to - this.part.from);
  }

  /** Where a span begins and how much of the sight it takes, without what is far outside; nothing for one that is not in sight. */
  stretch({ start, end }: Span): { from: number; width: number } | undefined {
    const [from, to] = [this.place(start), this.place(end)];
    if (to < 0 || from > 1) {
      return undefined;
    }
    const clipped = Math.max(-BEYOND, from);
    return { from: clipped, width: Math.min(1 + BEYOND, to) - clipped };
  }

  ticks(most: number): Tick[] {
    return this.axis.ticks(most, this.part);
  }

  time(place: number): number {
    return this.axis.time(this.part.from + place * (this.part.to - this.part.from));
  }
}

/** How far a bar reaches over the edge, so that its end is not seen. */
const BEYOND = 0.02;

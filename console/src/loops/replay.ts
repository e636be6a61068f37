// A playhead that moves over the axis of a recording.

import { useEffect, useState } from "preact/hooks";
import type { Axis } from "./axis";

export const SPEEDS = [1, 5, 20, 60] as const;

export interface Replay {
  /** From 0 to 1. */
  place: number;
  isPlaying: boolean;
  speed: number;
  setSpeed: (speed: number) => void;
  setPlace: (place: number) => void;
  toggle: () => void;
}

const STEP_MS = 100;

/** Stands at the end, which shows everything, until somebody plays or moves it. */
export function useReplay(axis: Axis): Replay {
  const [place, setPlace] = useState(1);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<number>(5);
  useEffect(() => {
    if (!isPlaying) {
      return undefined;
    }
    const step = () => setPlace((now) => Math.min(1, now + (STEP_MS * speed) / axis.length));
    const timer = window.setInterval(step, STEP_MS);
    return () => window.clearInterval(timer);
  }, [isPlaying, speed, axis.length]);
  useEffect(() => {
    if (place >= 1) {
      setPlaying(false);
    }
  }, [place]);
  const toggle = () => {
    if (!isPlaying && place >= 1) {
      setPlace(0);
    }
    setPlaying(!isPlaying);
  };
  return { place, isPlaying, speed, setSpeed, setPlace, toggle };
}

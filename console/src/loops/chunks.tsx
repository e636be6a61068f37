// Rows of the timeline by the hundred: only those near the sight are in the page.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RowGroup } from "./timeline";

/** Rows that come into the page together. */
const CHUNK_ROWS = 30;
/** The height of a row that was not in the page yet. */
const ROW_REM = 3.6;
/** How far from the sight rows come into the page. Which box scrolls depends on the width of the page, so none is named. */
const AROUND = { rootMargin: "400px", scrollMargin: "400px" };

export function chunksOf(groups: RowGroup[]): RowGroup[][] {
  const chunks: RowGroup[][] = [];
  let rows = CHUNK_ROWS;
  for (const group of groups) {
    if (rows >= CHUNK_ROWS) {
      chunks.push([]);
      rows = 0;
    }
    chunks.at(-1)?.push(group);
    rows += group.rows.length;
  }
  return chunks;
}

interface ChunkProps {
  at: number;
  groups: RowGroup[];
  /** Whether one of its rows is to be scrolled into sight, for which it has to be in the page. */
  isBrought: boolean;
  /** Which chunks are in the page. */
  onShown: (change: (shown: ReadonlySet<number>) => ReadonlySet<number>) => void;
  children: () => ComponentChildren;
}

export function Chunk({ at, groups, isBrought, onShown, children }: ChunkProps) {
  const box = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(at === 0);
  const [height, setHeight] = useState<number | undefined>(undefined);
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const observer = new IntersectionObserver(
      (seen) => {
        const isSeen = seen.at(-1)?.isIntersecting === true;
        if (!isSeen && element.childElementCount > 0) {
          setHeight(element.offsetHeight);
        }
        setNear(isSeen);
        onShown((shown) => changed(shown, at, isSeen));
      },
      AROUND,
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      onShown((shown) => changed(shown, at, false));
    };
  }, []);
  const rows = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const isHere = isNear || isBrought;
  return (
    <div ref={box} class="track-chunk" style={isHere ? {} : { height: height === undefined ? `${rows * ROW_REM}rem` : `${height}px` }}>
      {isHere && children()}
    </div>
  );
}

function changed(shown: ReadonlySet<number>, at: number, isShown: boolean): ReadonlySet<number> {
  if (shown.has(at) === isShown) {
    return shown;
  }
  const now = new Set(shown);
  if (isShown) {
    now.add(at);
  } else {
    now.delete(at);
  }
  return now;
}

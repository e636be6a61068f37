// A list of rows of one height, of which only those in sight are in the page.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  label: string;
  count: number;
  rowHeight: number;
  /** The row that is scrolled into sight when it changes. */
  selected: number;
  /** How far it is scrolled at first. */
  top: number;
  onScroll: (top: number) => void;
  renderRow: (index: number) => ComponentChildren;
  /** The end of the list comes near. */
  onNearEnd: () => void;
  children?: ComponentChildren;
}

/** Rows that are drawn beyond the edges, so that scrolling does not show them come. */
const ROWS_BEYOND = 8;
/** Rows before the end at which more are asked for. */
const ROWS_AHEAD = 60;

export function VirtualList({ label, count, rowHeight, selected, top, onScroll, renderRow, onNearEnd, children }: VirtualListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top, height: 800 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    element.scrollTop = top;
    const measure = () => {
      setView({ top: element.scrollTop, height: element.clientHeight });
      onScroll(element.scrollTop);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  useLayoutEffect(() => scrollIntoSight(box.current, selected, rowHeight), [selected, rowHeight]);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - ROWS_BEYOND);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + ROWS_BEYOND);
  useEffect(() => {
    if (last + ROWS_AHEAD >= count) {
      onNearEnd();
    }
  }, [last, count]);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(renderRow(index));
  }
  return (
    <div ref={box} class="virtual" tabIndex={-1}>
      <ul class="virtual-rows" aria-label={label} style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </ul>
      {children}
    </div>
  );
}

function scrollIntoSight(box: HTMLElement | null, index: number, rowHeight: number): void {
  if (box === null || index < 0) {
    return;
  }
  const top = index * rowHeight;
  if (top < box.scrollTop) {
    box.scrollTop = top;
  } else if (top + rowHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + rowHeight - box.clientHeight;
  }
}

import { useEffect, useState } from "preact/hooks";

/** Must be the heights of `.row` in sessions.css. */
const WIDE_ROW_REM = 2.75;
const NARROW_ROW_REM = 4.5;

const narrow = matchMedia("(max-width: 60rem)");

function measured(): number {
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  return rem * (narrow.matches ? NARROW_ROW_REM : WIDE_ROW_REM);
}

/** The height of a row in pixels: on narrow pages it has two lines, and letters are larger on large screens. */
export function useRowHeight(): number {
  const [height, setHeight] = useState(measured);
  useEffect(() => {
    const change = () => setHeight(measured());
    window.addEventListener("resize", change);
    return () => window.removeEventListener("resize", change);
  }, []);
  return height;
}

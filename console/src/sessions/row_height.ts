import { useEffect, useState } from "preact/hooks";

/** Must be the height of `.row` in sessions.css. */
const WIDE_ROW = 44;
const NARROW_ROW = 72;

const narrow = matchMedia("(max-width: 60rem)");

/** The height of a row: on narrow pages it has two lines. */
export function useRowHeight(): number {
  const [height, setHeight] = useState(narrow.matches ? NARROW_ROW : WIDE_ROW);
  useEffect(() => {
    const change = () => setHeight(narrow.matches ? NARROW_ROW : WIDE_ROW);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return height;
}

import { useLayoutEffect, useState } from "preact/hooks";

/** The size of an element, kept current. */
export function useSize(box: { current: HTMLElement | null }, start: { width: number; height: number }) {
  const [size, setSize] = useState(start);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}

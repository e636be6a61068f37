import { inert } from "./inert";

/** Text with places of it marked; places are counted in code points. */
export function Highlighted({ text, places }: { text: string; places: [number, number][] }) {
  const points = [...text];
  const parts = [];
  let at = 0;
  for (const [start, end] of places) {
    parts.push(inert(points.slice(at, start).join("")));
    parts.push(<mark key={start}>{inert(points.slice(start, end).join(""))}</mark>);
    at = end;
  }
  parts.push(inert(points.slice(at).join("")));
  return <bdi>{parts}</bdi>;
}

import type { StoreSize } from "../api/stats";
import { bytes, exactTime } from "../ui/format";
import { Panel } from "./panels";

const PARTS: [keyof StoreSize, string][] = [
  ["sessions_bytes", "Sessions"],
  ["search_bytes", "Search index"],
  ["catalogue_bytes", "Catalogue"],
  ["shared_bytes", "Shared state"],
  ["trash_bytes", "Trash"],
  ["staging_bytes", "Sessions being built"],
];

/** What the store's files take, as parts of a whole. */
export function SizeOnDisk({ size }: { size: StoreSize | null | undefined }) {
  if (size == null) {
    return (
      <Panel title="Size on disk">
        <p class="muted">Not measured: the store keeps no files here, it was not measured yet, or your token may not see it.</p>
      </Panel>
    );
  }
  const parts = PARTS.map(([key, name], at) => ({ name, value: size[key] ?? 0, at })).filter((part) => part.value > 0);
  return (
    <Panel title="Size on disk">
      <div class="share-bar" aria-hidden="true">
        {parts.map(({ name, value, at }) => (
          <span key={name} class={`series-${at}`} style={{ flexGrow: value }} />
        ))}
      </div>
      <dl class="facts">
        {parts.map(({ name, value, at }) => (
          <div key={name} class="fact">
            <dt>
              <span class={`legend-mark series-${at}`} /> {name}
            </dt>
            <dd>{bytes(value)}</dd>
          </div>
        ))}
        <div class="fact fact-sum">
          <dt>Total</dt>
          <dd>{bytes(size.total_bytes)}</dd>
        </div>
      </dl>
      <p class="muted">
        Measured at <time dateTime={new Date(size.measured_at).toISOString()}>{exactTime(size.measured_at)}</time>
      </p>
    </Panel>
  );
}

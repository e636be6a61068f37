import { useMemo } from "preact/hooks";
import { Dialog } from "./ui/dialog";
import { listedKeys } from "./ui/keys";

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "Space" };

export function ShortcutList({ onClose }: { onClose: () => void }) {
  const shortcuts = useMemo(listedKeys, []);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="shortcuts">
        {shortcuts.map(({ keys, about }) => (
          <div key={about} class="shortcut">
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{NAMES[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">
        The page uses only the public API: <a href="/docs">reference</a>, <a href="/openapi.json">openapi.json</a>. It is built with the work of
        others: <a href="/assets/licences.txt">licences</a>.
      </p>
    </Dialog>
  );
}

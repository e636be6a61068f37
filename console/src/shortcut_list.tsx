import { useMemo } from "preact/hooks";
import { Dialog } from "./ui/dialog";
import { activeShortcuts } from "./ui/keys";

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", " ": "Space" };

export function ShortcutList({ onClose }: { onClose: () => void }) {
  const shortcuts = useMemo(activeShortcuts, []);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="shortcuts">
        {shortcuts.map(({ key, about }) => (
          <div key={key + about} class="shortcut">
            <dt>
              <kbd>{NAMES[key] ?? key}</kbd>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">
        The API that this page uses is described in <a href="/openapi.json">openapi.json</a>. Licences of what it is built with:{" "}
        <a href="/assets/licences.txt">licences.txt</a>.
      </p>
    </Dialog>
  );
}

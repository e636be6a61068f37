import { useEffect, useState } from "preact/hooks";
import { connection } from "./api/connection";
import { useStore } from "./ui/use_store";

/** A connection that comes back this soon is not worth a word. */
const PATIENCE_MS = 700;

/** Says that what is shown may be old. */
export function ConnectionBanner() {
  const state = useStore(connection);
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (state !== "lost") {
      setShown(false);
      return;
    }
    const timer = window.setTimeout(() => setShown(true), PATIENCE_MS);
    return () => window.clearTimeout(timer);
  }, [state]);
  return (
    <div role="status">
      {isShown && (
        <p class="banner">The server does not answer. What you see may be old; it goes on by itself when the server is back.</p>
      )}
    </div>
  );
}

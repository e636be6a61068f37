// The beginning of what is too long to be drawn at once.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count } from "../ui/format";

/** Characters that are drawn before somebody asks for all of them. */
export const SHOWN_CHARS = 100_000;

interface BeginningProps {
  text: string;
  children: (shown: string) => ComponentChildren;
}

/** The beginning of a long text, with a button for the rest. */
export function Beginning({ text, children }: BeginningProps) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || text.length <= SHOWN_CHARS) {
    return <>{children(text)}</>;
  }
  return (
    <div class="beginning">
      {children(text.slice(0, SHOWN_CHARS))}
      <ShowAll what={`${count(text.length)} characters`} onClick={() => setWhole(true)} />
    </div>
  );
}

export function ShowAll({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <button type="button" class="button button-small show-all" onClick={onClick}>
      Show all {what}
    </button>
  );
}

import type { SessionStatus } from "../api/types";

const WORDS: Record<SessionStatus, string> = { idle: "Idle", working: "Working", done: "Done", error: "Failed" };

/** A dot with its meaning in words for those who cannot tell the colours apart. */
export function StatusMark({ status, reason }: { status: SessionStatus; reason?: string | undefined }) {
  const words = reason === undefined ? WORDS[status] : `${WORDS[status]}: ${reason}`;
  return (
    <span class={`status status-${status}`} title={words}>
      <span class="hidden">{words}.</span>
    </span>
  );
}

export function StatusTag({ status, reason }: { status: SessionStatus; reason?: string | undefined }) {
  return (
    <span class={`tag tag-${status}`} title={reason}>
      {WORDS[status]}
    </span>
  );
}

export const STATUSES = Object.entries(WORDS) as [SessionStatus, string][];

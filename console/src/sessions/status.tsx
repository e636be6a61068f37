import type { SessionStatus } from "../api/types";

const WORDS: Record<SessionStatus, string> = { idle: "Idle", working: "Working", done: "Done", error: "Failed" };

/** A mark whose shape and colour say it at a glance; the word stands beside it. */
export function StatusMark({ status }: { status: SessionStatus }) {
  return <span class={`status status-${status}`} aria-hidden="true" />;
}

export function StatusWord({ status, reason }: { status: SessionStatus; reason?: string | undefined }) {
  return (
    <span class={`row-status row-status-${status} ellipsis`} title={reason}>
      {WORDS[status]}
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

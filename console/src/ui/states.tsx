// What a view shows when it has nothing to show.

import type { ComponentChildren } from "preact";
import { describe } from "../api/client";

interface StateProps {
  title: string;
  /** Whether it stands for the whole view, so that its title is the view's. */
  isView?: boolean;
  children?: ComponentChildren;
}

export function EmptyState({ title, isView = false, children }: StateProps) {
  const Title = isView ? "h1" : "h2";
  return (
    <div class="state">
      <Title>{title}</Title>
      {children}
    </div>
  );
}

interface ErrorStateProps {
  error: unknown;
  isView?: boolean;
  onRetry: () => void;
}

export function ErrorState({ error, isView = false, onRetry }: ErrorStateProps) {
  return (
    <div role="alert">
      <EmptyState title="This could not be loaded" isView={isView}>
        <p>{describe(error)}</p>
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      </EmptyState>
    </div>
  );
}

/** Rows of which nothing is known yet. */
const LOADING_ROWS = 6;

export function Loading() {
  return (
    <div class="loading" role="status">
      <p class="muted">Loading …</p>
      <div class="loading-rows" aria-hidden="true">
        {Array.from({ length: LOADING_ROWS }, (_, at) => (
          <span key={at} />
        ))}
      </div>
    </div>
  );
}

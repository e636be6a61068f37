// What a view shows when it has nothing to show.

import type { ComponentChildren } from "preact";
import { ApiError, describe } from "../api/client";
import { sessionHref } from "../router";
import { WithCode } from "./with_code";

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
  /** The session that was asked for. */
  session?: string;
  onRetry: () => void;
}

export function ErrorState({ error, isView = false, session, onRetry }: ErrorStateProps) {
  if (error instanceof ApiError && error.code === "session/not_found") {
    return <Nowhere title="There is no such session" about="It may have been deleted, or the link is not complete." isView={isView} />;
  }
  if (isNoEntry(error) && session !== undefined) {
    return (
      <Nowhere title="There is no such entry" about="The session does not have the entry that this link leads to." isView={isView}>
        <a class="button button-main" href={sessionHref(session)}>
          Read the session
        </a>
      </Nowhere>
    );
  }
  return (
    <div role="alert">
      <EmptyState title="This could not be loaded" isView={isView}>
        <p>
          <WithCode text={describe(error)} />
        </p>
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      </EmptyState>
    </div>
  );
}

export function isNoEntry(error: unknown): boolean {
  return error instanceof ApiError && error.code === "session/entry_not_found";
}

interface NowhereProps extends StateProps {
  about: string;
}

/** For links that lead to nothing. */
export function Nowhere({ title, about, isView = false, children }: NowhereProps) {
  return (
    <EmptyState title={title} isView={isView}>
      <p>{about}</p>
      <div class="state-actions">
        {children}
        <a class="button" href="#/sessions">
          Show all sessions
        </a>
      </div>
    </EmptyState>
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

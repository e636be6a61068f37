import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, describe, sendJson } from "../api/client";
import { go, sessionHref, type SessionFilters } from "../router";
import { Prompt } from "../ui/dialog";
import { sessionTitle } from "../ui/format";
import { Icon } from "../ui/icons";
import { useKeyList, useShortcuts } from "../ui/keys";
import type { MenuItem } from "../ui/menu";
import { usePageTitle } from "../ui/page_title";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useStore } from "../ui/use_store";
import { undoLast } from "../ui/toasts";
import { WithCode } from "../ui/with_code";
import { VirtualList } from "../ui/virtual_list";
import { isSearch, needsIndex } from "./addresses";
import { attempt, remove, rename, setArchived } from "./actions";
import { FilterBar } from "./filters";
import { keepList, takeList } from "./kept_lists";
import type { SessionList } from "./list";
import { SessionRow } from "./row";
import type { Row } from "./source";
import { useRowHeight } from "./row_height";

export function SessionsView({ filters }: { filters: SessionFilters }) {
  const list = useMemo(() => takeList(filters), []);
  const shown = useRef(filters);
  shown.current = filters;
  useLayoutEffect(() => {
    list.follow();
    return () => {
      list.rest();
      keepList(shown.current, list);
    };
  }, [list]);
  const isFirst = useRef(true);
  useEffect(() => {
    // The list begins with the filters that it was made with.
    if (isFirst.current) {
      isFirst.current = false;
    } else {
      list.filter(filters);
    }
  }, [filters]);
  const [isCreating, setCreating] = useState(false);
  usePageTitle("Sessions");
  return (
    <div class="sessions">
      <div class="view-head">
        <h1>Sessions</h1>
        <div class="view-tools">
          <a class="button" href="#/trash">
            <Icon name="trash" />
            <span class="trash-name">Deleted</span>
          </a>
          <button type="button" class="button" onClick={() => setCreating(true)}>
            New session
          </button>
        </div>
      </div>
      <FilterBar filters={filters} />
      <Rows list={list} filters={filters} />
      {isCreating && <NewSession onClose={() => setCreating(false)} />}
    </div>
  );
}

function Rows({ list, filters }: { list: SessionList; filters: SessionFilters }) {
  const state = useStore(list.state);
  const rowHeight = useRowHeight();
  const [selected, setSelected] = useState(list.place.selected);
  const [renamed, setRenamed] = useState<Row | undefined>(undefined);
  const { rows } = state;
  const at = Math.min(selected, rows.length - 1);

  const mark = (index: number) => {
    list.place.selected = index;
    setSelected(index);
  };
  const select = (index: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    mark(next);
    requestAnimationFrame(() => rowAt(next)?.focus());
  };
  const archive = async (row: Row) => {
    const isArchived = !filters.archived;
    if (await setArchived(row.meta.session_id, isArchived, titleOf(row))) {
      list.remove(row.meta.session_id);
    }
  };
  const discard = async (row: Row) => {
    if (await remove(row.meta.session_id, titleOf(row))) {
      list.remove(row.meta.session_id);
    }
  };
  // Back from a session: the keyboard goes on from its row.
  useEffect(() => rowAt(list.place.selected)?.focus({ preventScroll: true }), []);
  const withSelected = (action: (row: Row) => void) => () => {
    const row = rows[at];
    if (row !== undefined) {
      action(row);
    }
  };
  useShortcuts([
    { key: "/", about: "Search", act: () => document.getElementById("search")?.focus() },
    { key: "j", about: "Next session", act: () => select(list.place.selected + 1) },
    { key: "k", about: "Previous session", act: () => select(list.place.selected - 1) },
    { key: "ArrowDown", about: "Next session", act: () => select(list.place.selected + 1) },
    { key: "ArrowUp", about: "Previous session", act: () => select(list.place.selected - 1) },
    { key: "Home", about: "First session", act: () => select(0) },
    { key: "End", about: "Last session that is loaded", act: () => select(rows.length - 1) },
    { key: "r", about: "Rename", act: withSelected(setRenamed) },
    { key: "a", about: filters.archived ? "Take back from the archive" : "Archive", act: withSelected((row) => void archive(row)) },
    { key: "Delete", about: "Delete", act: withSelected((row) => void discard(row)) },
    { key: "u", about: "Undo", act: undoLast },
  ]);
  useKeyList([{ key: "Enter", about: "Open the session" }]);

  if (isRefused(state.error)) {
    return <NotUnderstood error={state.error} />;
  }
  if (state.error !== undefined && rows.length === 0) {
    return <ErrorState error={state.error} onRetry={() => void list.reload()} />;
  }
  if (rows.length === 0) {
    return state.isLoading ? <Loading /> : <NoRows filters={filters} isBehind={state.isBehind} />;
  }
  const actionsFor = (row: Row): MenuItem[] => [
    { label: "Rename", icon: "edit", onPick: () => setRenamed(row) },
    { label: filters.archived ? "Take back" : "Archive", icon: "archive", onPick: () => void archive(row) },
    { label: "Delete", icon: "trash", onPick: () => void discard(row) },
  ];
  return (
    <>
      <ColumnHeads isSearch={isSearch(filters)} />
      <VirtualList
        label="Sessions"
        count={rows.length}
        rowHeight={rowHeight}
        selected={at}
        top={list.place.top}
        onScroll={(top) => (list.place.top = top)}
        onNearEnd={() => void list.loadMore()}
        renderRow={(index) => {
          const row = rows[index];
          return (
            row !== undefined && (
              <SessionRow
                key={row.meta.session_id}
                row={row}
                index={index}
                top={index * rowHeight}
                isSelected={index === Math.max(0, at)}
                actions={actionsFor(row)}
                onFocus={() => mark(index)}
              />
            )
          );
        }}
      >
        {state.isBehind && <p class="muted list-note">The search index is still reading; more may be found.</p>}
      </VirtualList>
      {renamed !== undefined && (
        <Prompt
          title="Rename session"
          label="Title"
          action="Rename"
          value={renamed.meta.title}
          allowsEmpty
          onAnswer={(title) => void rename(renamed.meta.session_id, title, renamed.meta.title)}
          onClose={() => setRenamed(undefined)}
        />
      )}
    </>
  );
}

function rowAt(index: number): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-index="${index}"]`);
}

function ColumnHeads({ isSearch }: { isSearch: boolean }) {
  return (
    <div class={isSearch ? "row-heads row-heads-found" : "row-heads"} aria-hidden="true">
      <span>Title</span>
      <span>Status</span>
      {isSearch && <span>Found</span>}
      <span>Agent</span>
      <span>Model</span>
      <span class="row-number">Messages</span>
      <span class="row-number">Tokens</span>
      <span class="row-number">Cost</span>
      <span class="row-number">Active</span>
    </div>
  );
}

function isRefused(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 400 || error.status === 413);
}

/** Words and filters that the server refuses: trying the same again would not help. */
function NotUnderstood({ error }: { error: ApiError }) {
  return (
    <div role="alert">
      <EmptyState title="This search is not understood">
        <p>
          <WithCode text={describe(error)} />
        </p>
        <a class="button" href="#/sessions">
          Show all sessions
        </a>
      </EmptyState>
    </div>
  );
}

function NoRows({ filters, isBehind }: { filters: SessionFilters; isBehind: boolean }) {
  if (needsIndex(filters) || filters.since !== "" || filters.status !== "" || filters.metadata !== "" || filters.archived) {
    return (
      <EmptyState title="No session matches">
        <p>{isBehind ? "The search index is still reading; results appear as it goes on." : "Use fewer words or filters."}</p>
        <a class="button" href="#/sessions">
          Show all sessions
        </a>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No sessions yet">
      <p>Point an agent at this server, or begin one by hand:</p>
      <pre class="code">
        <code>{`curl -X PUT ${location.origin}/v1/sessions/first \\\n  -H 'content-type: application/json' -d '{"title":"My first"}'`}</code>
      </pre>
    </EmptyState>
  );
}

function NewSession({ onClose }: { onClose: () => void }) {
  const create = (title: string) =>
    void attempt(async () => {
      const made = await sendJson<{ session_id: string }>("POST", "/v1/sessions", { title });
      go(sessionHref(made.session_id));
    });
  return <Prompt title="New session" label="Title" action="Create" value="" allowsEmpty onAnswer={create} onClose={onClose} />;
}

function titleOf(row: Row): string {
  return sessionTitle(row.meta, row.details);
}

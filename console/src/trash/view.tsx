// Deleted sessions, until their retention ends.

import { useEffect, useState } from "preact/hooks";
import { getJson, isAbort, isTransient, sendJson } from "../api/client";
import type { SessionMeta } from "../api/types";
import { sessionHref } from "../router";
import { attempt } from "../sessions/actions";
import { agoInWords, count, counted, exactTime, sessionTitle, shortDay } from "../ui/format";
import { inert } from "../ui/inert";
import { usePageTitle } from "../ui/page_title";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useReturn } from "../ui/use_return";
import { Ago } from "../ui/time";
import { notify } from "../ui/toasts";

interface TrashItem {
  incarnation: string;
  meta: SessionMeta;
  name?: string;
  preview?: string;
  deleted_at: number;
  /** Absent when it is kept until somebody removes it. */
  expires_at?: number;
}

interface TrashPage {
  sessions: TrashItem[];
  next_cursor?: string;
}

const PAGE = 100;

export function TrashView() {
  const [items, setItems] = useState<TrashItem[]>();
  const [next, setNext] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  usePageTitle("Deleted sessions");
  const readAgain = () => setRound((now) => now + 1);
  useReturn(readAgain);
  useEffect(() => {
    const work = new AbortController();
    getJson<TrashPage>("/v1/trash", { limit: PAGE }, work.signal).then(
      (page) => {
        setItems(page.sessions);
        setNext(page.next_cursor);
        setError(undefined);
      },
      (failure: unknown) => isAbort(failure) || setError(failure),
    );
    return () => work.abort();
  }, [round]);
  const readOn = () =>
    void attempt(async () => {
      const page = await getJson<TrashPage>("/v1/trash", { limit: PAGE, cursor: next });
      setItems((shown) => [...(shown ?? []), ...page.sessions]);
      setNext(page.next_cursor);
    });
  if (error !== undefined && !(isTransient(error) && items !== undefined)) {
    return <ErrorState error={error} isView onRetry={readAgain} />;
  }
  if (items === undefined) {
    return <Loading />;
  }
  const onRestored = (restored: TrashItem) => setItems((shown) => shown?.filter((item) => item !== restored));
  return (
    <div class="page">
      <div class="page-head">
        <h1>Deleted sessions</h1>
        <a class="button" href="#/sessions">
          Show all sessions
        </a>
      </div>
      {items.length === 0 ? (
        <EmptyState title="Nothing is in the trash">
          <p>Sessions that are deleted stay here for a while and can be brought back.</p>
        </EmptyState>
      ) : (
        <Items items={items} onRestored={onRestored} />
      )}
      {next !== undefined && (
        <button type="button" class="button" onClick={readOn}>
          Show more
        </button>
      )}
    </div>
  );
}

function Items({ items, onRestored }: { items: TrashItem[]; onRestored: (item: TrashItem) => void }) {
  const restore = (item: TrashItem) =>
    void attempt(async () => {
      const { session_id: id } = item.meta;
      await sendJson("POST", `/v1/trash/${encodeURIComponent(id)}/undelete`, { incarnation: item.incarnation });
      onRestored(item);
      notify(`Brought back “${inert(titleOf(item))}”.`, undefined, { href: sessionHref(id), text: "Open" });
    });
  return (
    <div class="table-box" role="region" aria-label="Deleted sessions" tabIndex={0}>
      <table class="table trash">
        <thead>
          <tr>
            <th scope="col">Title</th>
            <th scope="col">Messages</th>
            <th scope="col">Deleted</th>
            <th scope="col">Kept until</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.incarnation}>
              <th scope="row">
                <bdi>{inert(titleOf(item))}</bdi>
                <span class="trash-facts muted">
                  {counted(item.meta.message_count, "message")}, deleted {agoInWords(item.deleted_at)}
                  {item.expires_at !== undefined && `, kept until ${shortDay(item.expires_at)}`}
                </span>
              </th>
              <td>{count(item.meta.message_count)}</td>
              <td>
                <Ago at={item.deleted_at} />
              </td>
              <td>{item.expires_at === undefined ? "it is removed by hand" : exactTime(item.expires_at)}</td>
              <td>
                <button type="button" class="button button-small" aria-label={`Restore ${inert(titleOf(item))}`} onClick={() => restore(item)}>
                  Restore
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function titleOf({ meta, name, preview }: TrashItem): string {
  return sessionTitle({ ...meta, title: [meta.title, name, preview].find((text) => text !== undefined && text.trim() !== "") ?? "" });
}

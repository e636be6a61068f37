import { useState } from "preact/hooks";
import type { SessionDetails, SessionMeta } from "../api/types";
import { go, listHref, loopsHref, sessionHref, treeHref } from "../router";
import { attempt, remove, rename, setArchived } from "../sessions/actions";
import { StatusTag } from "../sessions/status";
import { copyText } from "../ui/clipboard";
import { Prompt } from "../ui/dialog";
import { agentOf, compact, count, counted, money, sessionTitle } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";
import { Menu } from "../ui/menu";
import { usePageTitle } from "../ui/page_title";
import { notify } from "../ui/toasts";
import { pathAsMarkdown } from "./as_markdown";
import type { Starter } from "./family";
import { whole } from "./path";

interface SessionHeadProps {
  meta: SessionMeta;
  details: SessionDetails | undefined;
  leaf: string | undefined;
  view: "transcript" | "tree" | "compare" | "loops";
  /** The session whose call started this one. */
  starter?: Starter | undefined;
}

/** Entries that are copied at most. */
const COPIED_ENTRIES_MAX = 5_000;

/** What a session is called and what it cost, with what can be done to it. */
export function SessionHead({ meta, details, leaf, view, starter }: SessionHeadProps) {
  const [isRenaming, setRenaming] = useState(false);
  const id = meta.session_id;
  const title = sessionTitle(meta, details);
  const isArchived = details?.archived === true;
  usePageTitle(title);
  const discard = async () => {
    if (await remove(id, title)) {
      go(listHref());
    }
  };
  return (
    <div class="session-head">
      <a class="icon-button" href={listHref()} aria-label="Back to the sessions">
        <Icon name="left" />
      </a>
      <div class="session-names">
        <h1 class="ellipsis">
          <bdi>{inert(title)}</bdi>
        </h1>
        <p class="session-facts">
          <StatusTag status={meta.status} reason={meta.status_reason} />
          {isArchived && <span class="tag">archived</span>}
          <Facts meta={meta} details={details} />
          {starter !== undefined && (
            <a class="ellipsis" href={sessionHref(starter.session)}>
              started by <bdi>{inert(starter.title)}</bdi>
            </a>
          )}
        </p>
        {meta.status === "error" && meta.status_reason !== undefined && <p class="bad session-trouble">{inert(meta.status_reason)}</p>}
      </div>
      <nav class="tabs" aria-label="Views of this session">
        <a class="nav-link" href={sessionHref(id)} aria-current={view === "transcript" ? "page" : undefined}>
          Transcript
        </a>
        <a class="nav-link" href={treeHref(id)} aria-current={view === "tree" ? "page" : undefined}>
          Tree
        </a>
        <a class="nav-link" href={loopsHref(id)} aria-current={view === "loops" ? "page" : undefined}>
          Loops
        </a>
      </nav>
      <Menu
        label="Actions for this session"
        items={[
          { label: "Rename", icon: "edit", onPick: () => setRenaming(true) },
          { label: "Copy as Markdown", icon: "copy", onPick: () => void attempt(() => copyWhole(id, title, leaf)) },
          { label: "Copy id", icon: "link", onPick: () => void copyText(id, "the id") },
          { label: isArchived ? "Take back" : "Archive", icon: "archive", onPick: () => void setArchived(id, !isArchived, title) },
          { label: "Delete", icon: "trash", onPick: () => void discard() },
        ]}
      />
      {isRenaming && (
        <Prompt
          title="Rename session"
          label="Title"
          action="Rename"
          value={meta.title}
          allowsEmpty
          onAnswer={(next) => void rename(id, next, meta.title)}
          onClose={() => setRenaming(false)}
        />
      )}
    </div>
  );
}

function Facts({ meta, details }: { meta: SessionMeta; details: SessionDetails | undefined }) {
  const total = details?.usage.total;
  const tokens = total === undefined ? 0 : total.input + total.output + total.cache_read + total.cache_write;
  const facts = [agentOf(meta.metadata), details?.model?.model, counted(meta.message_count, "message")];
  if (tokens > 0) {
    facts.push(`${compact(tokens)} tokens`);
  }
  if (total !== undefined && total.cost_usd > 0) {
    facts.push(money(total.cost_usd));
  }
  return (
    <>
      {facts.map((fact) => fact !== undefined && <span key={fact} class="ellipsis session-fact">{inert(fact)}</span>)}
      {meta.forked_from !== undefined && (
        <a href={sessionHref(meta.forked_from)} title={meta.forked_from}>
          forked from another session
        </a>
      )}
    </>
  );
}

async function copyWhole(session: string, title: string, leaf: string | undefined): Promise<void> {
  const part = await whole(session, leaf, COPIED_ENTRIES_MAX);
  await copyText(pathAsMarkdown(title, part.items), "the conversation");
  if (part.hasNewer) {
    notify(`Only the first ${count(part.items.length)} entries were copied; bough export writes all of them.`);
  }
}

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PathItem, SessionMeta } from "../api/types";
import { go, listHref, sessionHref, treeHref } from "../router";
import { restore } from "../sessions/actions";
import { copyText } from "../ui/clipboard";
import { counted } from "../ui/format";
import { Icon } from "../ui/icons";
import { useShortcuts } from "../ui/keys";
import type { MenuItem } from "../ui/menu";
import { EmptyState, ErrorState, isNoEntry, Loading } from "../ui/states";
import { useStore } from "../ui/use_store";
import { messageAsMarkdown } from "./as_markdown";
import { Composer } from "./composer";
import { draftsOf, keepEdit, keepReply } from "./drafts";
import { canEdit, editableText, picturesIn } from "./edited";
import { type SubAgents, useFamily } from "./family";
import { grouped } from "./groups";
import { SessionHead } from "./head";
import { firstKept } from "./hidden";
import { EntryView } from "./message";
import { Picture } from "./tool";
import { useScrollKeeper } from "./scroll";
import { Transcript } from "./transcript";
import { edit, fork, reply, setLeaf } from "./writing";

export function TranscriptView({ session, entry }: { session: string; entry: string | undefined }) {
  const transcript = useMemo(() => new Transcript(session, entry), [session]);
  useEffect(() => () => transcript.close(), [transcript]);
  const state = useStore(transcript.state);
  const isFirst = useRef(true);
  useEffect(() => {
    // The transcript begins with the entry that it was made with.
    if (!isFirst.current && entry !== undefined) {
      transcript.show(entry);
    } else if (!isFirst.current && state.error !== undefined) {
      // Back from a link that led nowhere.
      transcript.showNewest();
    }
    isFirst.current = false;
  }, [entry]);

  if (state.isDeleted) {
    return (
      <EmptyState title="This session was deleted" isView>
        <p>It is kept in the trash for a while.</p>
        <div class="state-actions">
          <button type="button" class="button button-main" onClick={() => void restore(session)}>
            Restore
          </button>
          <a class="button" href="#/sessions">
            Show all sessions
          </a>
        </div>
      </EmptyState>
    );
  }
  if (state.error !== undefined && (state.items.length === 0 || isNoEntry(state.error))) {
    return <ErrorState error={state.error} isView session={session} onRetry={() => transcript.retry()} />;
  }
  if (state.isLoading || state.meta === undefined) {
    return <Loading />;
  }
  return <Conversation transcript={transcript} meta={state.meta} entry={entry} />;
}

function Conversation({ transcript, meta, entry }: { transcript: Transcript; meta: SessionMeta; entry: string | undefined }) {
  const state = useStore(transcript.state);
  const { subAgents, starter } = useFamily(transcript.session, state.items);
  return (
    <div class="transcript">
      <SessionHead meta={meta} details={state.details} leaf={state.otherLeaf ?? state.activeLeaf} view="transcript" starter={starter} />
      <Path transcript={transcript} entry={entry} subAgents={subAgents} />
    </div>
  );
}

function Path({ transcript, entry, subAgents }: { transcript: Transcript; entry: string | undefined; subAgents: SubAgents }) {
  const state = useStore(transcript.state);
  const { session } = transcript;
  const [isAtEnd, setAtEnd] = useState(true);
  const [edited, setEdited] = useState<string | undefined>(() => draftsOf(session).edit?.entry);
  const handlers = {
    onNearTop: () => void transcript.loadOlder(),
    onNearEnd: () => void transcript.loadNewer(),
    isEndLoaded: () => !state.hasNewer,
    onEnd: setAtEnd,
  };
  const { box, content, keeper } = useScrollKeeper(handlers, state.items);
  const groups = useMemo(() => grouped(state.items), [state.items]);
  const kept = useMemo(() => firstKept(state.items), [state.items]);
  useTarget(entry, state.items, (target) => keeper.current?.toEntry(target) ?? false);

  const isGoingUp = useRef(false);
  useEffect(() => {
    const first = state.items[0];
    if (isGoingUp.current && !state.hasOlder && first !== undefined) {
      isGoingUp.current = false;
      keeper.current?.toEntry(first.entry_id);
    }
  }, [state.items]);
  const toOldest = () => {
    isGoingUp.current = true;
    transcript.showOldest();
  };
  const toNewest = () => {
    if (state.hasNewer || state.otherLeaf !== undefined) {
      transcript.showNewest();
    }
    keeper.current?.toEnd();
  };
  const step = (by: number) => {
    const entries = keeper.current?.entries() ?? [];
    const at = entries.findIndex((element) => element === document.activeElement);
    const next = entries[at < 0 ? entries.length - 1 : at + by];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest" });
  };
  useShortcuts([
    { key: "j", about: "Next message", act: () => step(1) },
    { key: "k", about: "Previous message", act: () => step(-1) },
    { key: "G", about: "Newest message", act: toNewest },
    { key: "g", about: "First message", act: toOldest },
    { key: "r", about: "Write a reply", act: () => document.querySelector<HTMLElement>(".reply textarea")?.focus() },
    { key: "Backspace", about: "Back to the sessions", act: () => go(listHref()) },
  ]);

  const actionsFor = (item: PathItem): MenuItem[] => {
    const actions: MenuItem[] = [
      { label: "Copy as Markdown", icon: "copy", onPick: () => void copyText(item.message === undefined ? "" : messageAsMarkdown(item.message), "the message") },
      { label: "Copy link", icon: "link", onPick: () => void copyText(new URL(sessionHref(session, item.entry_id), location.href).href, "the link") },
      { label: "Continue from here", icon: "branch", onPick: () => void setLeaf(session, item.entry_id, transcript.state.get().activeLeaf) },
      {
        label: "Fork to a new session",
        icon: "fork",
        onPick: () => void fork(session, item.entry_id).then((made) => made !== undefined && go(sessionHref(made))),
      },
    ];
    if (canEdit(item.message)) {
      actions.splice(2, 0, { label: "Edit on a new branch", icon: "edit", onPick: () => setEdited(item.entry_id) });
    }
    return actions;
  };

  return (
    <>
      <div ref={box} class="transcript-box" tabIndex={0} role="region" aria-label="Messages">
        <div ref={content} class="transcript-content">
          {state.hasOlder && <p class="muted list-note">Loading earlier messages …</p>}
          {groups.length === 0 && <NothingHere session={session} entries={state.details?.entry_count ?? 0} />}
          {groups.map((group) => [
            group.item.entry_id === kept && (
              <p key="kept" class="kept-line">
                From here on the model reads every message; for those above it reads a summary.
              </p>
            ),
            group.item.entry_id === edited ? (
              <EditedMessage key={group.item.entry_id} session={session} item={group.item} onClose={() => setEdited(undefined)} />
            ) : (
              <EntryView
                key={group.item.entry_id}
                session={session}
                group={group}
                isStreaming={state.streaming.has(group.item.entry_id)}
                isTarget={group.item.entry_id === entry}
                subAgents={subAgents}
                actionsFor={actionsFor}
              />
            ),
          ])}
          {state.hasNewer && <p class="muted list-note">Loading later messages …</p>}
        </div>
      </div>
      {(!isAtEnd || state.hasNewer) && (
        <button type="button" class="button jump" onClick={toNewest}>
          <Icon name="down" />
          Newest
        </button>
      )}
      <div class="reply">
        {state.otherLeaf === undefined ? (
          <Composer
            label="Write a message to this session"
            action="Send"
            value={draftsOf(session).reply ?? ""}
            onText={(text) => keepReply(session, text)}
            onSend={(text) => reply(session, text, state.activeLeaf)}
          />
        ) : (
          <OtherBranch session={session} leaf={state.otherLeaf} active={state.activeLeaf} onActive={() => go(sessionHref(session))} onNewest={() => transcript.showNewest()} />
        )}
      </div>
    </>
  );
}

function NothingHere({ session, entries }: { session: string; entries: number }) {
  if (entries === 0) {
    return (
      <EmptyState title="Nothing was said yet">
        <p>Write the first message below, or let an agent write to this session.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="The active path is empty">
      <p>This session has {counted(entries, "entry", "entries")} on other branches. Choose one of them in the tree, or begin anew below.</p>
      <a class="button" href={treeHref(session)}>
        Show the tree
      </a>
    </EmptyState>
  );
}

/** A message while it is edited. What was typed stays until it is stored or given up. */
function EditedMessage({ session, item, onClose }: { session: string; item: PathItem; onClose: () => void }) {
  const { entry_id: entry } = item;
  const { edit: draft } = draftsOf(session);
  const content = item.message?.content ?? [];
  const close = () => {
    keepEdit(session, undefined);
    onClose();
  };
  const save = async (text: string) => {
    const isDone = await edit(session, entry, text);
    if (isDone) {
      close();
    }
    return isDone;
  };
  return (
    <div class="message" data-entry={entry}>
      <Composer
        label="The message on a new branch"
        action="Save as a branch"
        value={draft?.entry === entry ? draft.text : editableText(content)}
        onText={(text) => keepEdit(session, text.trim() === "" ? undefined : { entry, text })}
        onCancel={close}
        onSend={save}
      >
        {picturesIn(content).map(({ mime, data }, at) => (
          <Picture key={at} mime={mime} data={data} />
        ))}
      </Composer>
    </div>
  );
}

interface OtherBranchProps {
  session: string;
  leaf: string;
  active: string | undefined;
  onActive: () => void;
  onNewest: () => void;
}

/** Says that the path is not the active one, and how to change that. */
function OtherBranch({ session, leaf, active, onActive, onNewest }: OtherBranchProps) {
  const leave = () => {
    onActive();
    onNewest();
  };
  return (
    <div class="other-branch">
      <p>This is another branch than the active one.</p>
      <button type="button" class="button" onClick={leave}>
        Show the active branch
      </button>
      <button type="button" class="button button-main" onClick={() => void setLeaf(session, leaf, active)}>
        Make it active
      </button>
    </div>
  );
}

/** Brings the entry of a link into sight, once it is there. */
function useTarget(entry: string | undefined, items: PathItem[], bring: (entry: string) => boolean): void {
  const brought = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (entry === undefined) {
      brought.current = undefined;
    } else if (entry !== brought.current && bring(entry)) {
      brought.current = entry;
    }
  }, [entry, items]);
}

import { useEffect, useMemo, useState } from "preact/hooks";
import { sendJson, sessionPath } from "../api/client";
import { go, sessionHref } from "../router";
import { attempt } from "../sessions/actions";
import { SessionHead } from "../transcript/head";
import { fork, setLeaf } from "../transcript/writing";
import { Prompt } from "../ui/dialog";
import { clockTime, count } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useStore } from "../ui/store";
import { type TreeLayout, type TreeNode, whereTheyPart } from "./layout";
import { TreePicture } from "./picture";
import { TreeSource, type TreeState } from "./source";

export function TreeView({ session }: { session: string }) {
  const source = useMemo(() => new TreeSource(session), [session]);
  useEffect(() => () => source.close(), [source]);
  const state = useStore(source.state);
  if (state.error !== undefined && state.layout === undefined) {
    return <ErrorState error={state.error} isView onRetry={() => source.refresh()} />;
  }
  if (state.layout === undefined || state.meta === undefined) {
    return <Loading />;
  }
  return (
    <div class="tree">
      <SessionHead meta={state.meta} details={state.details} leaf={state.activeLeaf} view="tree" />
      {state.layout.nodes.length === 0 ? <EmptyState title="Nothing was said yet" /> : <TreeBody session={session} state={state} layout={state.layout} />}
    </div>
  );
}

function TreeBody({ session, state, layout }: { session: string; state: TreeState; layout: TreeLayout }) {
  const [selectedId, setSelectedId] = useState<string | undefined>(state.activeLeaf);
  const selected = selectedId === undefined ? undefined : layout.byId.get(selectedId);
  const active = state.activeLeaf === undefined ? undefined : layout.byId.get(state.activeLeaf);
  return (
    <div class="tree-body">
      <TreePicture
        layout={layout}
        labels={state.labels}
        selected={selected}
        onSelect={(node) => setSelectedId(node.entry.id)}
        onOpen={(node) => go(sessionHref(session, node.entry.id))}
      />
      <aside class="tree-side" aria-label="Selected entry" aria-live="polite">
        {selected === undefined ? (
          <p class="muted">Choose an entry in the tree.</p>
        ) : (
          <Selected key={selected.entry.id} session={session} node={selected} active={active} label={state.labels.get(selected.entry.id)} />
        )}
      </aside>
    </div>
  );
}

const KINDS: Record<string, string> = { user: "User", assistant: "Assistant", function_result: "Result of a call", custom: "Notice", bookkeeping: "Bookkeeping" };

interface SelectedProps {
  session: string;
  node: TreeNode;
  active: TreeNode | undefined;
  label: string | undefined;
}

function Selected({ session, node, active, label }: SelectedProps) {
  const [isLabelling, setLabelling] = useState(false);
  const { entry } = node;
  const setLabel = (text: string) =>
    void attempt(() => sendJson("PUT", sessionPath(session, "entries", entry.id, "label"), text === "" ? {} : { label: text }));
  return (
    <>
      <h2>{KINDS[entry.kind] ?? entry.kind}</h2>
      <p class="muted">
        {clockTime(entry.at)} · number {count(node.depth + 1)} of its path
      </p>
      {label !== undefined && <p class="tag tag-done">{inert(label)}</p>}
      <p class="plain">{inert(entry.preview)}</p>
      <div class="tree-actions">
        <a class="button" href={sessionHref(session, entry.id)}>
          Read
        </a>
        <button type="button" class="button" disabled={node === active} onClick={() => void setLeaf(session, entry.id)}>
          <Icon name="branch" />
          Make active
        </button>
        <button type="button" class="button" onClick={() => void fork(session, entry.id).then((made) => made !== undefined && go(sessionHref(made)))}>
          Fork
        </button>
        <button type="button" class="button" onClick={() => setLabelling(true)}>
          Label
        </button>
      </div>
      {active !== undefined && !node.isActive && <Comparison session={session} left={active} right={node} />}
      {isLabelling && (
        <Prompt title="Label this entry" label="Label; empty takes it away" action="Save" value={label ?? ""} allowsEmpty onAnswer={setLabel} onClose={() => setLabelling(false)} />
      )}
    </>
  );
}

/** Entries of each branch that are shown at most. */
const COMPARED_MAX = 100;

/** Two branches side by side from where they part. */
function Comparison({ session, left, right }: { session: string; left: TreeNode; right: TreeNode }) {
  const common = whereTheyPart(left, right);
  return (
    <section aria-label="Comparison with the active branch">
      <h3>From where they part</h3>
      <div class="tree-compared">
        <ComparedBranch title="Active branch" session={session} nodes={pathAfter(common, left)} />
        <ComparedBranch title="This branch" session={session} nodes={pathAfter(common, right)} />
      </div>
    </section>
  );
}

function ComparedBranch({ title, session, nodes }: { title: string; session: string; nodes: TreeNode[] }) {
  return (
    <div>
      <h4>{title}</h4>
      {nodes.length === 0 && <p class="muted">It ends here.</p>}
      <ol class="tree-entries">
        {nodes.slice(0, COMPARED_MAX).map(({ entry }) => (
          <li key={entry.id}>
            <a href={sessionHref(session, entry.id)}>{KINDS[entry.kind] ?? entry.kind}</a> <bdi>{inert(entry.preview)}</bdi>
          </li>
        ))}
      </ol>
      {nodes.length > COMPARED_MAX && <p class="muted">and {nodes.length - COMPARED_MAX} more</p>}
    </div>
  );
}

/** The entries of a path behind one of its entries, oldest first. */
function pathAfter(start: TreeNode | undefined, end: TreeNode): TreeNode[] {
  const path: TreeNode[] = [];
  for (let node: TreeNode | undefined = end; node !== undefined && node !== start; node = node.parent) {
    path.push(node);
  }
  return path.reverse();
}

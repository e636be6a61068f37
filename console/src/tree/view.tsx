import { useEffect, useMemo, useState } from "preact/hooks";
import { sendJson, sessionPath } from "../api/client";
import { compareHref, go, sessionHref } from "../router";
import { attempt } from "../sessions/actions";
import { SessionHead } from "../transcript/head";
import { fork, setLeaf } from "../transcript/writing";
import { Prompt } from "../ui/dialog";
import { clockTime, count } from "../ui/format";
import { inert } from "../ui/inert";
import { useKeyList } from "../ui/keys";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useStore } from "../ui/use_store";
import { FOLDED, foldRuns } from "./fold";
import { layOut, type TreeLayout, type TreeNode, whereTheyPart } from "./layout";
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
      {state.layout.nodes.length === 0 ? <NothingSaid session={session} /> : <TreeBody session={session} state={state} layout={state.layout} />}
    </div>
  );
}

function NothingSaid({ session }: { session: string }) {
  return (
    <EmptyState title="Nothing was said yet">
      <p>The tree grows with the messages of this session.</p>
      <a class="button" href={sessionHref(session)}>
        Write the first one
      </a>
    </EmptyState>
  );
}

function TreeBody({ session, state, layout }: { session: string; state: TreeState; layout: TreeLayout }) {
  const [selectedId, setSelectedId] = useState<string | undefined>(state.activeLeaf);
  useKeyList([
    { key: "Arrow keys", about: "Move through the tree" },
    { key: "Enter", about: "Read the entry" },
    { key: "+ −", about: "Larger, smaller" },
  ]);
  /** The branch that others are compared with, when it is not the active one. */
  const [markedId, setMarkedId] = useState<string | undefined>(undefined);
  const selected = selectedId === undefined ? undefined : layout.byId.get(selectedId);
  const marked = markedId === undefined ? undefined : layout.byId.get(markedId);
  const active = state.activeLeaf === undefined ? undefined : layout.byId.get(state.activeLeaf);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const drawn = useMemo(() => {
    const kept = new Set([selectedId, markedId, state.activeLeaf, ...state.labels.keys()].filter((id) => id !== undefined));
    return layOut(foldRuns(layout, { kept, opened }), state.activeLeaf);
  }, [layout, state.labels, state.activeLeaf, selectedId, markedId, opened]);
  const select = ({ entry }: TreeNode) => (entry.kind === FOLDED ? setOpened(new Set([...opened, entry.id])) : setSelectedId(entry.id));
  return (
    <div class="tree-body">
      <TreePicture
        layout={drawn}
        entries={layout.nodes.length}
        labels={state.labels}
        selected={selectedId === undefined ? undefined : drawn.byId.get(selectedId)}
        onSelect={select}
        onFold={opened.size === 0 ? undefined : () => setOpened(new Set())}
        onOpen={(node) => go(sessionHref(session, node.entry.id))}
      />
      <aside class="tree-side" aria-label="Selected entry" aria-live="polite">
        {selected === undefined ? (
          <p class="muted">Choose an entry in the tree.</p>
        ) : (
          <Selected
            key={selected.entry.id}
            session={session}
            node={selected}
            active={active}
            marked={marked}
            onMark={(node) => setMarkedId(node?.entry.id)}
            label={state.labels.get(selected.entry.id)}
          />
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
  /** The branch to compare with, when one was chosen. */
  marked: TreeNode | undefined;
  onMark: (node: TreeNode | undefined) => void;
  label: string | undefined;
}

function Selected({ session, node, active, marked, onMark, label }: SelectedProps) {
  const [isLabelling, setLabelling] = useState(false);
  const { entry } = node;
  const setLabel = (text: string) =>
    void attempt(() => sendJson("PUT", sessionPath(session, "entries", entry.id, "label"), text === "" ? {} : { label: text }));
  return (
    <>
      <h2>
        {KINDS[entry.kind] ?? entry.kind}
        {entry.tool !== "" && <bdi class="muted"> {inert(entry.tool)}</bdi>}
      </h2>
      <p class="muted">
        {clockTime(entry.at)} · entry {count(node.depth + 1)} of its branch
      </p>
      {label !== undefined && <p class="tag tag-done">{inert(label)}</p>}
      <p class="plain">{inert(entry.preview)}</p>
      <div class="tree-actions">
        <a class="button" href={sessionHref(session, entry.id)}>
          Read
        </a>
        <button type="button" class="button" disabled={node === active} onClick={() => void setLeaf(session, entry.id, active?.entry.id)}>
          Make active
        </button>
        <button type="button" class="button" onClick={() => void fork(session, entry.id).then((made) => made !== undefined && go(sessionHref(made)))}>
          Fork
        </button>
        <button type="button" class="button" onClick={() => setLabelling(true)}>
          Label
        </button>
        <button type="button" class="button" aria-pressed={node === marked} onClick={() => onMark(node === marked ? undefined : node)}>
          {node === marked ? "Compare with the active branch again" : "Compare others with this"}
        </button>
      </div>
      <ComparedWith session={session} node={node} active={active} marked={marked} />
      {isLabelling && (
        <Prompt title="Label this entry" label="Label; empty takes it away" action="Save" value={label ?? ""} allowsEmpty onAnswer={setLabel} onClose={() => setLabelling(false)} />
      )}
    </>
  );
}

/** Entries of each branch that are shown at most. */
const COMPARED_MAX = 100;

function ComparedWith({ session, node, active, marked }: Omit<SelectedProps, "onMark" | "label">) {
  if (marked !== undefined && marked !== node) {
    return <Comparison session={session} left={marked} right={node} with="the marked branch" title="Marked branch" />;
  }
  return active === undefined || node.isActive ? null : <Comparison session={session} left={active} right={node} with="the active branch" title="Active branch" />;
}

/** What two branches say from where they part, in short. */
function Comparison({ session, left, right, with: other, title }: { session: string; left: TreeNode; right: TreeNode; with: string; title: string }) {
  const common = whereTheyPart(left, right);
  return (
    <section aria-label={`Comparison with ${other}`}>
      <div class="tree-compared-head">
        <h3>From where they part</h3>
        <a class="button button-small" href={compareHref(session, left.entry.id, right.entry.id)}>
          Read side by side
        </a>
      </div>
      <div class="tree-compared">
        <ComparedBranch title={title} session={session} nodes={pathAfter(common, left)} />
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
            <a href={sessionHref(session, entry.id)}>{KINDS[entry.kind] ?? entry.kind}</a> {entry.tool !== "" && <bdi class="muted">{inert(entry.tool)}: </bdi>}
            <bdi>{inert(entry.preview)}</bdi>
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

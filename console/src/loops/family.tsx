// The sessions that spawned each other, as a tree with links both ways.

import type { SpawnedSession, SpawnLink, SpawnsAnswer } from "../api/loops";
import type { SessionMeta } from "../api/types";
import { loopsHref } from "../router";
import { compact, counted, sessionTitle } from "../ui/format";
import { inert } from "../ui/inert";

interface FamilyProps {
  session: string;
  spawns: SpawnsAnswer;
  titles: ReadonlyMap<string, string>;
  own: SessionMeta | undefined;
}

export function Family({ session, spawns, titles, own }: FamilyProps) {
  const title = (id: string) => (id === session && own !== undefined ? sessionTitle(own) : (titles.get(id) ?? id));
  const known = new Map(spawns.sessions.map((one) => [one.session_id, one]));
  const draw = (id: string, above: readonly string[]) => {
    const children = childrenOf(spawns.spawns, id).filter((link) => !above.includes(link.child_session_id));
    return (
      <li key={id}>
        <FamilyMember id={id} title={title(id)} about={known.get(id)} isOwn={id === session} />
        {children.length > 0 && <ul>{children.map((link) => draw(link.child_session_id, [...above, id]))}</ul>}
      </li>
    );
  };
  return (
    <section class="family" aria-label="Sub-agents">
      <h2>Sub-agents</h2>
      <ul class="family-tree">{rootsOf(spawns.spawns).map((id) => draw(id, []))}</ul>
      {spawns.more && <p class="muted">The family is larger than what is shown.</p>}
    </section>
  );
}

function FamilyMember({ id, title, about, isOwn }: { id: string; title: string; about: SpawnedSession | undefined; isOwn: boolean }) {
  const facts = about === undefined ? "not in this store" : [about.agent_id, counted(about.loops, "loop"), `${compact(about.usage.total_tokens)} tokens`].join(" · ");
  return (
    <a class="family-member" href={loopsHref(id)} aria-current={isOwn ? "page" : undefined}>
      <strong class="ellipsis">{inert(title)}</strong>
      <span class="muted ellipsis">{inert(facts)}</span>
    </a>
  );
}

/** The sub-agents of a session, each once. */
function childrenOf(links: SpawnLink[], id: string): SpawnLink[] {
  const children = links.filter((link) => link.parent_session_id === id);
  return children.filter((link, at) => children.findIndex((other) => other.child_session_id === link.child_session_id) === at);
}

/** The sessions that nobody spawned. */
function rootsOf(links: SpawnLink[]): string[] {
  const spawned = new Set(links.map((link) => link.child_session_id));
  return [...new Set(links.map((link) => link.parent_session_id))].filter((id) => !spawned.has(id));
}

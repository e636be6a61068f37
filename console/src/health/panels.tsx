import type { ComponentChildren } from "preact";
import { inert } from "../ui/inert";

export type Fact = [name: string, value: string];

export function Panel({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Names with their values; nothing where the reader may not see them. */
export function FactsPanel({ title, facts, children }: { title: string; facts: Fact[] | undefined; children?: ComponentChildren }) {
  return (
    <Panel title={title}>
      {facts === undefined ? <NotAllowed /> : <Facts facts={facts} />}
      {children}
    </Panel>
  );
}

export function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name} class="fact">
          <dt>{name}</dt>
          <dd>{inert(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function NotAllowed() {
  return <p class="muted">Your token does not have the right to see this.</p>;
}

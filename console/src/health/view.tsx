import { useEffect, useState } from "preact/hooks";
import { getJson, isAbort } from "../api/client";
import type { HealthAnswer } from "../api/stats";
import { bytes, count, duration } from "../ui/format";
import { inert } from "../ui/inert";
import { ErrorState, Loading } from "../ui/states";

const REFRESH_MS = 5_000;

export function HealthView() {
  const [health, setHealth] = useState<HealthAnswer>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const work = new AbortController();
    const read = () =>
      getJson<HealthAnswer>("/v1/health", {}, work.signal).then(
        (found) => {
          setHealth(found);
          setError(undefined);
        },
        (failure: unknown) => isAbort(failure) || setError(failure),
      );
    void read();
    const timer = window.setInterval(() => document.hidden || void read(), REFRESH_MS);
    return () => {
      work.abort();
      window.clearInterval(timer);
    };
  }, [round]);
  if (error !== undefined) {
    return <ErrorState error={error} isView onRetry={() => setRound(round + 1)} />;
  }
  return health === undefined ? <Loading /> : <HealthBody health={health} />;
}

function HealthBody({ health }: { health: HealthAnswer }) {
  const { store } = health;
  return (
    // Nothing in it takes the focus, so that the keyboard could not scroll it otherwise.
    <div class="page" tabIndex={0}>
      <div class="page-head">
        <h1>Health</h1>
        <span class={`tag ${health.status === "ready" ? "tag-done" : "tag-error"}`}>{health.draining ? "shutting down" : health.status}</span>
      </div>
      <div class="panels">
        <Panel title="Server" facts={[["Version", health.version], ["Running for", duration(health.uptime_ms)]]} />
        <Panel
          title="Store"
          facts={[
            ["Kind", store.kind],
            ["Reachable", store.is_reachable ? "yes" : "no"],
            ["Sessions", count(store.sessions)],
            ["Reopened after a failed write", count(store.reopened_sessions)],
            ...(store.trouble == null ? [] : [["Trouble", store.trouble] satisfies FactPair]),
          ]}
        />
        <Panel title="Search index" facts={factsOf(health.search)} />
        <Panel title="Configuration" facts={factsOf(health.config)} />
        <Panel title="Now" facts={health.now == null ? undefined : factsOf(health.now)} />
        <Panel title="Since the start" facts={health.since_start == null ? undefined : factsOf(health.since_start)} />
        <Panel title="Limits" facts={factsOf(health.limits)} />
        <section class="panel">
          <h2>Verification</h2>
          <p>Checking every byte takes a while, so it is a command. It reads only, and a server may run meanwhile:</p>
          <pre class="code">bough verify</pre>
        </section>
      </div>
    </div>
  );
}

type FactPair = [name: string, value: string];

function Panel({ title, facts }: { title: string; facts: FactPair[] | undefined }) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      {facts === undefined ? (
        <p class="muted">Your token does not have the right to see this.</p>
      ) : (
        <dl class="facts">
          {facts.map(([name, value]) => (
            <div key={name} class="fact">
              <dt>{name}</dt>
              <dd>{inert(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** The members of an object by their names in plain words. */
function factsOf(values: Record<string, unknown>): FactPair[] {
  return Object.entries(values)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [inWords(name), valueInWords(name, value)]);
}

function inWords(name: string): string {
  const words = name.replace(/_(ms|bytes)$/, "").replace(/^is_/, "").replaceAll("_", " ");
  return (words.charAt(0).toUpperCase() + words.slice(1)).replace(/^Http /, "HTTP ");
}

function valueInWords(name: string, value: unknown): string {
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  if (typeof value === "number") {
    return name.endsWith("_ms") ? duration(value) : name.endsWith("bytes") ? bytes(value) : count(value);
  }
  if (Array.isArray(value)) {
    return value.join(", ") || "none";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

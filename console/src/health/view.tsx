import { useEffect, useState } from "preact/hooks";
import { getJson, isAbort, isTransient, sendJson } from "../api/client";
import type { HealthAnswer } from "../api/stats";
import { attempt } from "../sessions/actions";
import { bytes, compact, count, duration } from "../ui/format";
import { Figure } from "../ui/figure";
import { usePageTitle } from "../ui/page_title";
import { ErrorState, Loading } from "../ui/states";
import { useReturn } from "../ui/use_return";
import { FactsPanel } from "./panels";
import { SizeOnDisk } from "./size_on_disk";
import { verdictOf, Verification } from "./verification";
import { limitsInWords, nowInWords, sinceStartInWords, storeInWords, storeLimitsInWords } from "./words";

const REFRESH_MS = 5_000;

export function HealthView() {
  const [health, setHealth] = useState<HealthAnswer>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  usePageTitle("Health");
  const readAgain = () => setRound((now) => now + 1);
  useReturn(readAgain);
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
  if (error !== undefined && !(isTransient(error) && health !== undefined)) {
    return <ErrorState error={error} isView onRetry={readAgain} />;
  }
  const verify = () => void attempt(() => sendJson("POST", "/v1/verify")).then(readAgain);
  return health === undefined ? <Loading /> : <HealthBody health={health} onVerify={verify} />;
}

function HealthBody({ health, onVerify }: { health: HealthAnswer; onVerify: () => void }) {
  return (
    // Nothing in it may take the focus, so that the keyboard could not scroll it otherwise.
    <div class="page" tabIndex={0}>
      <div class="page-head">
        <h1>Health</h1>
        <span class={`tag ${health.status === "ready" ? "tag-done" : "tag-error"}`}>{health.draining ? "shutting down" : health.status}</span>
      </div>
      <Figures health={health} />
      <div class="panels">
        <FactsPanel title="Store" facts={storeInWords(health.store)} />
        <SizeOnDisk size={health.store.size} />
        <Verification verification={health.verification} onVerify={onVerify} />
        <SearchIndex search={health.search} />
        <Configuration config={health.config} />
        <FactsPanel title="Now" facts={health.now == null ? undefined : nowInWords(health.now)} />
        <FactsPanel title="Since the start" facts={health.since_start == null ? undefined : sinceStartInWords(health.since_start)} />
        <FactsPanel title="Limits" facts={limitsInWords(health.limits)} />
        <FactsPanel title="Limits of the store" facts={storeLimitsInWords(health.store.limits)} />
      </div>
    </div>
  );
}

/** What one looks for first. */
function Figures({ health: { store, verification, now, uptime_ms, version } }: { health: HealthAnswer }) {
  return (
    <dl class="figures">
      <Figure name="Sessions" value={compact(store.sessions)} about={store.is_reachable ? "the store answers" : "the store does not answer"} />
      <Figure name="On disk" value={store.size == null ? "–" : bytes(store.size.total_bytes)} about={store.size == null ? "not measured yet" : "all files of the store"} />
      <Figure name="Verified" {...verdictOf(verification)} />
      <Figure name="Subscribers" value={now == null ? "–" : count(now["subscribers"] ?? 0)} about={now == null ? "your token may not see it" : "live streams that are open"} />
      <Figure name="Running for" value={duration(uptime_ms)} about={`version ${version}`} />
    </dl>
  );
}

function SearchIndex({ search }: { search: HealthAnswer["search"] }) {
  const state = search.is_complete ? "It has read everything." : "It is reading; until then a search may miss what is new.";
  const facts: [string, string][] = [
    ["Complete", search.is_complete ? "yes" : "no"],
    ["Sessions to read", count(search.behind_sessions)],
    ["Changes to read", count(search.behind_changes)],
  ];
  return (
    <FactsPanel title="Search index" facts={facts}>
      <p class="muted">{state}</p>
    </FactsPanel>
  );
}

function Configuration({ config }: { config: HealthAnswer["config"] }) {
  const facts: [string, string][] = [
    ["Last reload", config.last_outcome],
    ["Refused reloads", count(config.rejected_reloads)],
  ];
  return (
    <FactsPanel title="Configuration" facts={facts}>
      {config.last_error == null ? <p class="muted">Changes of config.yaml are taken while the server runs.</p> : <p class="bad plain">{config.last_error}</p>}
    </FactsPanel>
  );
}


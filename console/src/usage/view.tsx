import { useEffect, useState } from "preact/hooks";
import { getJson, isAbort, isTransient, sessionPath } from "../api/client";
import type { StatsAnswer, StatsRow } from "../api/stats";
import type { SessionMeta } from "../api/types";
import { go, sessionHref, usageHref, type UsageQuery } from "../router";
import { Figure } from "../ui/figure";
import { compact, count, duration, money, sessionTitle } from "../ui/format";
import { inert } from "../ui/inert";
import { usePageTitle } from "../ui/page_title";
import { EmptyState, ErrorState, Loading } from "../ui/states";
import { useReturn } from "../ui/use_return";
import { cachePart, chartOf, type Grouping, type Measure, nameOf, readBy, tokensOf } from "./chart";
import { StackedBars } from "./stacked_bars";

interface UsageData {
  total: StatsRow | undefined;
  byDay: StatsRow[];
  /** Whether the newest days are missing, because there are too many sums. */
  isCut: boolean;
  byGroup: StatsRow[];
  bySession: StatsRow[];
  /** What the sessions are called that are shown. */
  titles: ReadonlyMap<string, string>;
}

/** The most sums that the server gives. */
const ROWS_MAX = 10_000;
const SESSIONS_SHOWN = 10;
const SPANS: Record<string, string> = { "7d": "7 days", "30d": "30 days", "90d": "90 days", all: "All time" };

export function UsageView({ query }: { query: UsageQuery }) {
  const [data, setData] = useState<UsageData>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  usePageTitle("Usage");
  useEffect(() => {
    const work = new AbortController();
    load(query, work.signal).then(
      (found) => {
        setData(found);
        setError(undefined);
      },
      (failure: unknown) => isAbort(failure) || setError(failure),
    );
    return () => work.abort();
  }, [query.by, query.since, round]);
  const refresh = () => setRound((now) => now + 1);
  useReturn(refresh);
  if (error !== undefined && !(isTransient(error) && data !== undefined)) {
    return <ErrorState error={error} isView onRetry={refresh} />;
  }
  if (data === undefined) {
    return <Loading />;
  }
  return (
    <div class="page">
      <div class="page-head">
        <h1>Usage</h1>
        <Controls query={query} onRefresh={refresh} />
      </div>
      {data.total === undefined || data.byDay.length === 0 ? (
        <EmptyState title="Nothing was used in this time">
          <p>Choose a longer time, or point an agent at this server.</p>
        </EmptyState>
      ) : (
        <UsageBody query={query} data={data} total={data.total} />
      )}
    </div>
  );
}

function UsageBody({ query, data, total }: { query: UsageQuery; data: UsageData; total: StatsRow }) {
  const chart = chartOf(data.byDay, query.by, query.of, spanOf(query.since));
  const named = query.by === "session" ? chart.series.map((one) => ({ ...one, name: data.titles.get(one.name) ?? one.name })) : chart.series;
  const what = query.of === "tokens" ? "Tokens per day, in and out, cache included" : "Cost per day, in US dollars";
  return (
    <>
      <Figures total={total} />
      {chart.series.length === 0 && <p class="muted">No reply of this time states a cost.</p>}
      {chart.series.length > 0 && <StackedBars data={{ ...chart, series: named }} title={`${what}, by ${query.by} (days in UTC)`} format={query.of === "tokens" ? compact : money} />}
      {data.isCut && <p class="muted">There are too many sums to draw all of them: the newest days are missing. Choose a shorter time.</p>}
      {query.by !== "session" && <Sums caption={`By ${query.by}`} rows={data.byGroup.map((row) => ({ name: nameOf(row, query.by), row }))} />}
      <Sums
        caption="Sessions that cost most"
        rows={data.bySession.map((row) => ({ name: data.titles.get(row.session_id ?? "") ?? "", href: sessionHref(row.session_id ?? ""), row }))}
      />
    </>
  );
}

/** The days that were asked for, whether something was used on them or not. */
function spanOf(since: string): string[] {
  const days = Number.parseInt(since, 10);
  const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
  return Number.isNaN(days) ? [day(0)] : [day(days), day(0)];
}

function Controls({ query, onRefresh }: { query: UsageQuery; onRefresh: () => void }) {
  const change = (part: Partial<UsageQuery>) => go(usageHref({ ...query, ...part }));
  return (
    <div class="page-tools">
      <Choice label="Time" value={query.since} options={SPANS} onPick={(since) => change({ since })} />
      <Choice label="Show" value={query.of} options={{ tokens: "Tokens", cost: "Cost" }} onPick={(of) => change({ of: of as Measure })} />
      <Choice label="By" value={query.by} options={{ model: "Model", agent: "Agent", project: "Project", session: "Session" }} onPick={(by) => change({ by: by as Grouping })} />
      <button type="button" class="button" onClick={onRefresh}>
        Refresh
      </button>
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: Record<string, string>;
  onPick: (value: string) => void;
}

function Choice({ label, value, options, onPick }: ChoiceProps) {
  return (
    <label class="choice">
      <span class="muted">{label}</span>
      <select class="input" value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {Object.entries(options).map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Figures({ total }: { total: StatsRow }) {
  const { usage } = total;
  return (
    <dl class="figures">
      <Figure name="Cost" value={money(usage.cost_usd)} about="as the replies state it" />
      <Figure name="Tokens" value={compact(tokensOf(usage))} about={`${compact(readBy(usage))} in, ${compact(usage.output)} out`} />
      <Figure name="From the cache" value={part(cachePart(usage))} about={`${compact(usage.cache_read)} of ${compact(readBy(usage))} tokens in`} />
      <Figure name="Replies" value={count(usage.messages)} about={`models took ${duration(total.model_time_ms)}`} />
      <Figure name="Tool calls" value={count(total.tool_calls)} about={`took ${duration(total.tool_time_ms)}, ${count(total.tool_errors)} failed`} />
    </dl>
  );
}

function Sums({ caption, rows }: { caption: string; rows: { name: string; href?: string; row: StatsRow }[] }) {
  return (
    <div class="table-box" role="region" aria-label={caption} tabIndex={0}>
      <table class="table">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Cost</th>
            <th scope="col">Tokens in</th>
            <th scope="col">From the cache</th>
            <th scope="col">Tokens out</th>
            <th scope="col">Replies</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, href, row: { usage } }, at) => (
            <tr key={at}>
              <th scope="row">{href === undefined ? <bdi>{inert(name)}</bdi> : <a href={href}>{inert(name)}</a>}</th>
              <td>{usage.cost_usd === 0 ? "–" : money(usage.cost_usd)}</td>
              <td>{count(readBy(usage))}</td>
              <td>{part(cachePart(usage))}</td>
              <td>{count(usage.output)}</td>
              <td>{count(usage.messages)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function part(value: number | undefined): string {
  return value === undefined ? "–" : `${Math.round(value * 100)} %`;
}

async function load({ by, since }: UsageQuery, signal: AbortSignal): Promise<UsageData> {
  const from = since === "all" ? undefined : since;
  const ask = (groups: string | undefined, limit?: number) => getJson<StatsAnswer>("/v1/stats", { by: groups, from, limit }, signal);
  const [total, byDay, byGroup, bySession] = await Promise.all([
    ask(undefined),
    ask(`day,${by}`, ROWS_MAX),
    by === "session" ? undefined : ask(by),
    ask("session", SESSIONS_SHOWN),
  ]);
  const titles = await titlesOf(shownSessions(bySession.rows, by === "session" ? byDay.rows : []), signal);
  return { total: total.rows[0], byDay: byDay.rows, isCut: byDay.more, byGroup: byGroup?.rows ?? [], bySession: bySession.rows, titles };
}

/** The sessions whose titles are shown: those of the table, and those that have a colour in the chart by either measure. */
function shownSessions(table: StatsRow[], byDay: StatsRow[]): Set<string> {
  const drawn = (["tokens", "cost"] as const).flatMap((measure) => chartOf(byDay, "session", measure).series.map((one) => one.name));
  const known = new Set(byDay.map((row) => row.session_id));
  return new Set([...table.map((row) => row.session_id ?? ""), ...drawn.filter((id) => known.has(id))]);
}

async function titlesOf(sessions: Set<string>, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const named = [...sessions].map(async (session): Promise<[string, string]> => [session, await titleOf(session, signal)]);
  return new Map(await Promise.all(named));
}

/** What a session is called; one that is gone keeps its id. */
async function titleOf(session: string, signal: AbortSignal): Promise<string> {
  const found = await getJson<{ meta: SessionMeta }>(sessionPath(session), {}, signal).catch(() => undefined);
  return found === undefined ? session : sessionTitle(found.meta);
}

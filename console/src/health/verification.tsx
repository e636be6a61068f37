import type { HealthAnswer } from "../api/stats";
import { agoInWords, bytes, count, counted, duration, exactTime } from "../ui/format";
import { inert } from "../ui/inert";
import { type Fact, Facts, Panel } from "./panels";

type Checked = HealthAnswer["verification"];

const STATES = {
  well: { value: "well", about: "every byte is what was written" },
  damaged: { value: "damaged", about: "some sessions are not what was written" },
  failed: { value: "not finished", about: "the last check could not end" },
  never: { value: "never", about: "nothing was checked yet" },
};

/** The last verification in a word. */
export function verdictOf(checked: Checked): { value: string; about: string } {
  if (checked == null) {
    return { value: "–", about: "by the command bough verify" };
  }
  const { value, about } = STATES[checked.status];
  return { value, about: checked.last == null ? about : `${about}; checked ${agoInWords(checked.last.finished_at)}` };
}

/** What the last check of every byte found, and a button for the next one. */
export function Verification({ verification, onVerify }: { verification: Checked; onVerify: () => void }) {
  if (verification == null) {
    return (
      <Panel title="Verification">
        <p>Checking every byte takes a while. The command only reads, and a server may run meanwhile:</p>
        <pre class="code">bough verify</pre>
      </Panel>
    );
  }
  const { status, last, running_since: since } = verification;
  return (
    <Panel title="Verification">
      <p>
        {status === "never" ? "Nothing was checked yet." : <><span class={`tag ${TAGS[status]}`}>{STATES[status].value}</span> {STATES[status].about}</>}
      </p>
      {last != null && <Facts facts={factsOf(last)} />}
      {last?.failure != null && <p class="bad plain">{inert(last.failure)}</p>}
      {last?.damaged_sessions != null && last.damaged_sessions.length > 0 && (
        <p class="bad plain">
          Damaged: {inert(last.damaged_sessions.join(", "))}. <code>bough salvage</code> copies what is whole.
        </p>
      )}
      <button type="button" class="button panel-action" disabled={since != null} onClick={onVerify}>
        {since == null ? "Check every byte now" : `Checking since ${exactTime(since)}`}
      </button>
    </Panel>
  );
}

const TAGS = { well: "tag-done", damaged: "tag-error", failed: "tag-error" };

function factsOf(last: NonNullable<NonNullable<Checked>["last"]>): Fact[] {
  return [
    ["When", exactTime(last.finished_at)],
    ["Took", duration(last.finished_at - last.started_at)],
    ["Read", `${counted(last.sessions, "session")}, ${bytes(last.bytes)}`],
    ["Damaged", count(last.damaged)],
  ];
}

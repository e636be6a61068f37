import type { LoopEntry } from "../api/loops";
import { sessionHref } from "../router";
import { firstLine, secondTime } from "../ui/format";
import { inert } from "../ui/inert";
import type { Axis } from "./axis";
import { type Replay, SPEEDS } from "./replay";
import type { LoopRow } from "./timeline";

interface ControlsProps {
  replay: Replay;
  axis: Axis;
  cutsPauses: boolean;
  onCutsPauses: (cuts: boolean) => void;
}

const SLIDER_STEPS = 1_000;

export function ReplayControls({ replay, axis, cutsPauses, onCutsPauses }: ControlsProps) {
  return (
    <div class="replay" role="group" aria-label="Replay">
      <button type="button" class="button" onClick={replay.toggle}>
        {replay.isPlaying ? "Pause" : "Replay"}
      </button>
      <label class="replay-speed">
        <span class="muted">Speed</span>
        <select class="input" value={String(replay.speed)} onChange={(event) => replay.setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((speed) => (
            <option key={speed} value={String(speed)}>
              {speed}×
            </option>
          ))}
        </select>
      </label>
      <input
        class="replay-slider"
        type="range"
        aria-label="Time"
        aria-valuetext={secondTime(axis.time(replay.place))}
        min="0"
        max={SLIDER_STEPS}
        value={Math.round(replay.place * SLIDER_STEPS)}
        onInput={(event) => replay.setPlace(Number(event.currentTarget.value) / SLIDER_STEPS)}
      />
      <output class="replay-time">{secondTime(axis.time(replay.place))}</output>
      <label class="check">
        <input type="checkbox" checked={cutsPauses} onChange={(event) => onCutsPauses(event.currentTarget.checked)} />
        Cut pauses
      </label>
    </div>
  );
}

/** Messages that are shown before the playhead. */
const SHOWN = 5;
const ROLES: Record<string, string> = { user: "User", assistant: "Assistant", function_result: "Result", custom: "Notice" };

interface MessagesProps {
  session: string;
  entries: LoopEntry[];
  byId: ReadonlyMap<string, LoopRow>;
  time: number;
  /** Whether entries are still being read. */
  isReading: boolean;
}

/** What was said last at the time of the playhead. */
export function ReplayedMessages({ session, entries, byId, time, isReading }: MessagesProps) {
  const said = entries.filter((entry) => entry.timestamp <= time && entry.message !== undefined);
  return (
    <section class="replayed" aria-label="Messages up to this time">
      <h2>Said by {secondTime(time)}</h2>
      {isReading && <p class="muted">Loading …</p>}
      {said.length === 0 && !isReading && <p class="muted">Nothing yet.</p>}
      <ol class="replayed-list">
        {said.slice(-SHOWN).map(({ entry_id: id, message, origin }) => (
          <li key={id}>
            <a href={sessionHref(session, id)}>{ROLES[message?.role ?? ""] ?? "Message"}</a>{" "}
            <span class="muted">loop {byId.get(origin?.loop_id ?? "")?.number ?? "?"}</span> <bdi class="replayed-text">{inert(textOf(message))}</bdi>
          </li>
        ))}
      </ol>
    </section>
  );
}

const TEXT_CHARS = 200;

function textOf(message: LoopEntry["message"]): string {
  const content = message?.content ?? [];
  const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" ");
  const calls = content.flatMap((block) => (block.type === "function_call" ? [`→ ${block.function_id}`] : []));
  return [firstLine(text), ...calls].filter((part) => part !== "").join(" ").slice(0, TEXT_CHARS);
}

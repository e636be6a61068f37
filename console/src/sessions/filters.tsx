import { useEffect, useRef, useState } from "preact/hooks";
import { NO_FILTERS, replace, route, sessionsHref, type SessionFilters } from "../router";
import { Icon } from "../ui/icons";
import { isMetadataUnfinished } from "./addresses";
import { STATUSES } from "./status";

const SINCE = [
  ["", "Any time"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
] as const;

/** Typing is sent on after this pause. */
const TYPING_MS = 150;

/** What the address says now: two fields may change before the view is drawn again. */
function change(changes: Partial<SessionFilters>): void {
  const current = route.get();
  replace(sessionsHref({ ...(current.view === "sessions" ? current.filters : NO_FILTERS), ...changes }));
}

/** The search box and the filters. They live in the address, so that a view of the list can be shared. */
export function FilterBar({ filters }: { filters: SessionFilters }) {
  const narrowing = [filters.agent, filters.tool, filters.metadata].filter((text) => text !== "").length + (filters.archived ? 1 : 0);
  const [isOpen, setOpen] = useState(narrowing > 0);
  return (
    <search class="filters">
      <div class="filters-main">
        <div class="search-box">
          <Icon name="search" />
          <TypedInput
            id="search"
            label="Search titles and content"
            placeholder="Search titles and content"
            value={filters.text}
            onValue={(text) => change({ text })}
          />
        </div>
        <Choice label="Status" value={filters.status} onValue={(status) => change({ status })} choices={[["", "Any status"], ...STATUSES]} />
        <Choice label="Time" value={filters.since} onValue={(since) => change({ since })} choices={SINCE} />
        <button type="button" class="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name="filter" />
          Filters
          {narrowing > 0 && <span class="tag tag-done">{narrowing}</span>}
        </button>
      </div>
      {isOpen && (
        <div class="filters-more">
          <TypedInput label="Agent" placeholder="any" value={filters.agent} onValue={(agent) => change({ agent })} isShown />
          <TypedInput label="Tool" placeholder="any" value={filters.tool} onValue={(tool) => change({ tool })} isShown />
          <TypedInput label="Metadata" placeholder="key=value" value={filters.metadata} onValue={(metadata) => change({ metadata })} isShown />
          {isMetadataUnfinished(filters.metadata) && <p class="muted filters-hint">Write key=value, such as project=reports.</p>}
          <label class="check">
            <input type="checkbox" checked={filters.archived} onChange={(event) => change({ archived: event.currentTarget.checked })} />
            Archived
          </label>
          <button type="button" class="button" onClick={() => change(NO_FILTERS)}>
            Clear
          </button>
        </div>
      )}
    </search>
  );
}

interface TypedInputProps {
  id?: string;
  label: string;
  placeholder: string;
  value: string;
  onValue: (value: string) => void;
  /** Whether the label is shown beside the field. */
  isShown?: boolean;
}

function TypedInput({ id, label, placeholder, value, onValue, isShown = false }: TypedInputProps) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  /** What was sent on last: when it comes back as the value, more may have been typed. */
  const sent = useRef(value);
  useEffect(() => {
    if (value !== sent.current) {
      window.clearTimeout(timer.current);
      sent.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const type = (next: string) => {
    setText(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      sent.current = next;
      onValue(next);
    }, TYPING_MS);
  };
  return (
    <label class={isShown ? "field" : "field field-wide"}>
      <span class={isShown ? "label" : "hidden"}>{label}</span>
      <input id={id} class="input" type="search" placeholder={placeholder} value={text} spellcheck={false} autocomplete="off" onInput={(event) => type(event.currentTarget.value)} />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  choices: readonly (readonly [string, string])[];
  onValue: (value: string) => void;
}

function Choice({ label, value, choices, onValue }: ChoiceProps) {
  return (
    <label class="field">
      <span class="hidden">{label}</span>
      <select class="input" value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {choices.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

import { Component } from "preact";
import type { SearchHit } from "../api/types";
import { sessionHref } from "../router";
import { agentOf, compact, counted, money, sessionTitle } from "../ui/format";
import { Highlighted } from "../ui/highlighted";
import { inert } from "../ui/inert";
import { Menu, type MenuItem } from "../ui/menu";
import { Ago } from "../ui/time";
import { StatusMark, StatusWord } from "./status";
import type { Row } from "./source";

interface SessionRowProps {
  row: Row;
  index: number;
  top: number;
  isSelected: boolean;
  actions: MenuItem[];
  onFocus: () => void;
}

/** One session of the list. It is drawn again only when it changes, because scrolling draws the list in every frame. */
export class SessionRow extends Component<SessionRowProps> {
  override shouldComponentUpdate(next: Readonly<SessionRowProps>): boolean {
    const { row, index, top, isSelected } = this.props;
    return row !== next.row || index !== next.index || top !== next.top || isSelected !== next.isSelected;
  }

  override render({ row, index, top, isSelected, actions, onFocus }: SessionRowProps) {
    const { meta, details, hit } = row;
    const title = inert(sessionTitle(meta, details));
    // The place is shown where it is, as long as the title is what was searched.
    const inTitle = hit?.snippet?.kind === "title" && inert(hit.snippet.text) === title ? hit.snippet : undefined;
    return (
      <li class="row" style={{ top: `${top}px` }} aria-posinset={index + 1} aria-setsize={-1} data-selected={isSelected || undefined}>
        <a class={hit === undefined ? "row-link" : "row-link row-link-found"} href={sessionHref(meta.session_id, hit?.entry_id)} data-index={index} tabIndex={isSelected ? 0 : -1} onFocus={onFocus}>
          <span class="row-title">
            <StatusMark status={meta.status} />
            <bdi class="ellipsis">{inTitle === undefined ? title : <Highlighted text={inTitle.text} places={inTitle.highlights} />}</bdi>
            {meta.forked_from !== undefined && <span class="tag">fork</span>}
          </span>
          <StatusWord status={meta.status} reason={meta.status_reason} />
          {hit !== undefined && <Found hit={hit} isInTitle={inTitle !== undefined} title={title} />}
          <Facts row={row} />
          <span class="row-time">
            <Ago at={meta.updated_at} />
          </span>
        </a>
        <Menu label={`Actions for ${title}`} items={actions} />
      </li>
    );
  }
}

function Facts({ row: { meta, details } }: { row: Row }) {
  const total = details?.usage.total;
  const tokens = total === undefined ? 0 : total.input + total.output + total.cache_read + total.cache_write;
  return (
    <>
      <span class="row-agent ellipsis">{inert(agentOf(meta.metadata) ?? "")}</span>
      <span class="row-model ellipsis">{inert(details?.model?.model ?? "")}</span>
      <span class="row-number row-messages" title={counted(meta.message_count, "message")}>
        {compact(meta.message_count)}
        <span class="row-unit">{meta.message_count === 1 ? " message" : " messages"}</span>
      </span>
      <span class="row-number row-tokens" title={counted(tokens, "token")}>
        {tokens === 0 ? "" : compact(tokens)}
        <span class="row-unit">{tokens === 0 ? "" : " tokens"}</span>
      </span>
      <span class="row-number row-cost">{total === undefined || total.cost_usd === 0 ? "" : money(total.cost_usd)}</span>
    </>
  );
}

/** Where something was found, or how the session begins when that was its title and says more. */
function Found({ hit: { snippet, preview }, isInTitle, title }: { hit: SearchHit; isInTitle: boolean; title: string }) {
  const isShown = snippet !== undefined && !isInTitle;
  const beginning = inert(preview ?? "");
  return <span class="row-found ellipsis">{isShown ? <Highlighted text={snippet.text} places={snippet.highlights} /> : beginning === title ? "" : beginning}</span>;
}

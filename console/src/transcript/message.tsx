import { Component } from "preact";
import type { ContentBlock, CustomPayload, Message, PathItem } from "../api/types";
import { sessionHref } from "../router";
import { Boundary } from "../ui/boundary";
import { clockTime, compact, exactTime, firstLine, money } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";
import { Menu, type MenuItem } from "../ui/menu";
import { speaker } from "./as_markdown";
import { callKey, type SubAgent, type SubAgents } from "./family";
import { type Group, isSameGroup } from "./groups";
import { COMPACTION, HiddenPath } from "./hidden";
import { Markdown } from "./markdown";
import { Fold, Picture, ResultContent, ToolCall } from "./tool";

export interface MessageProps {
  session: string;
  group: Group;
  isStreaming: boolean;
  /** The entry that a link leads to. */
  isTarget: boolean;
  subAgents: SubAgents;
  actionsFor: (item: PathItem) => MenuItem[];
}

/** One entry of the path. It is drawn again only when it changes, because a path has many. */
export class EntryView extends Component<MessageProps> {
  override shouldComponentUpdate(next: Readonly<MessageProps>): boolean {
    const { group, isStreaming, isTarget, subAgents } = this.props;
    return isStreaming !== next.isStreaming || isTarget !== next.isTarget || subAgents !== next.subAgents || !isSameGroup(group, next.group);
  }

  override render({ session, group, isStreaming, isTarget, subAgents, actionsFor }: MessageProps) {
    const { item } = group;
    if (item.message === undefined) {
      return <Notice session={session} item={item} isTarget={isTarget} />;
    }
    const { message } = item;
    return (
      <article class={`message message-${message.role}`} data-entry={item.entry_id} data-target={isTarget || undefined} tabIndex={-1} aria-label={speaker(message)}>
        <header class="message-head">
          <h2 class="message-role">{inert(speaker(message))}</h2>
          {message.model !== undefined && message.model !== "" && <span class="muted ellipsis">{inert(message.model)}</span>}
          {isStreaming && <span class="tag tag-working">writing</span>}
          <SiblingSwitcher session={session} item={item} />
          <span class="message-facts">
            <Cost message={message} />
            {message.timestamp !== undefined && message.timestamp > 0 && (
              <time dateTime={new Date(message.timestamp).toISOString()} title={exactTime(message.timestamp)}>
                {clockTime(message.timestamp)}
              </time>
            )}
          </span>
          <Menu label={`Actions for this message of ${speaker(message)}`} items={actionsFor(item)} />
        </header>
        <div class="message-body">
          <Boundary fallback={<p class="callout">This message could not be drawn. “Copy as Markdown” has its text.</p>}>
            <Body group={group} message={message} subAgents={subAgents} />
          </Boundary>
          <Trouble message={message} />
        </div>
      </article>
    );
  }
}

/** Leads to the other entries that follow the same one. */
function SiblingSwitcher({ session, item }: { session: string; item: PathItem }) {
  const siblings = item.siblings ?? [];
  const at = siblings.indexOf(item.entry_id);
  if (siblings.length < 2 || at < 0) {
    return null;
  }
  return (
    <div class="siblings" role="group" aria-label="Versions of this message">
      <SiblingLink session={session} entry={siblings[at - 1]} icon="left" label="Previous version" />
      <span>
        {at + 1} of {siblings.length}
      </span>
      <SiblingLink session={session} entry={siblings[at + 1]} icon="chevron" label="Next version" />
    </div>
  );
}

function SiblingLink({ session, entry, icon, label }: { session: string; entry: string | undefined; icon: "left" | "chevron"; label: string }) {
  if (entry === undefined) {
    return (
      <span class="icon-button" data-disabled>
        <Icon name={icon} />
      </span>
    );
  }
  return (
    <a class="icon-button" href={sessionHref(session, entry)} aria-label={label}>
      <Icon name={icon} />
    </a>
  );
}

interface BodyProps {
  group: Group;
  message: Message;
  subAgents: SubAgents;
}

function Body({ group, message, subAgents }: BodyProps) {
  if (message.role === "function_result") {
    return <ResultContent content={message.content} />;
  }
  return (
    <>
      {message.content.map((block, at) => (
        <Block key={at} block={block} group={group} message={message} subAgents={subAgents} />
      ))}
    </>
  );
}

function Block({ block, group, message, subAgents }: BodyProps & { block: ContentBlock }) {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} />;
    case "thinking":
      return (
        <Fold
          icon="thought"
          head={
            <>
              <strong>Thinking</strong>
              <span class="fold-about ellipsis">{inert(firstLine(block.text))}</span>
            </>
          }
        >
          {() => <Markdown text={block.text} />}
        </Fold>
      );
    case "image":
      return <Picture mime={block.mime} data={block.data} />;
    case "function_call":
      return (
        <>
          <ToolCall call={block} calledAt={message.timestamp} result={group.results.get(block.id)} isOpen={false} />
          <SubAgentLink subAgent={subAgents.get(callKey(group.item, block.id))} />
        </>
      );
    case "function_result":
      return <ResultContent content={block.content} />;
  }
}

/** Leads to the session of the agent that a call started. */
function SubAgentLink({ subAgent }: { subAgent: SubAgent | undefined }) {
  if (subAgent === undefined) {
    return null;
  }
  return (
    <a class="sub-agent" href={sessionHref(subAgent.session)}>
      <Icon name="branch" />
      Read what the sub-agent <strong>{inert(subAgent.agent)}</strong> did
    </a>
  );
}

function Cost({ message: { usage } }: { message: Message }) {
  if (usage === undefined) {
    return null;
  }
  const read = (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.cache_write ?? 0);
  const parts = [`${compact(read)} in`, `${compact(usage.output ?? 0)} out`];
  if (usage.cost_usd !== undefined && usage.cost_usd > 0) {
    parts.push(money(usage.cost_usd));
  }
  return <span title="Tokens read and written, and their price">{parts.join(" · ")}</span>;
}

function Trouble({ message }: { message: Message }) {
  const { stop_reason: reason, error_message: error, warnings } = message;
  return (
    <>
      {(error !== undefined || reason === "error") && (
        <p class="callout callout-bad">
          <Icon name="warning" />
          <bdi>{inert(error ?? "The reply ended with an error.")}</bdi>
        </p>
      )}
      {reason === "aborted" && <p class="callout">The reply was stopped before its end.</p>}
      {reason === "length" && <p class="callout">The reply ended because the model ran out of room.</p>}
      {(warnings ?? []).map((warning) => (
        <p key={warning} class="callout">
          <bdi>{inert(warning)}</bdi>
        </p>
      ))}
    </>
  );
}

const BOOKKEEPING: Record<string, string> = {
  "bough.model_change": "Model changed",
  "bough.thinking_level_change": "Thinking level changed",
  [COMPACTION]: "Earlier messages were summarised",
  "bough.branch_summary": "Summary of another branch",
  "bough.session_info": "Session named",
  "bough.label": "Label",
};

/** An entry that is not a message: one line, with what it keeps inside. */
function Notice({ session, item, isTarget }: { session: string; item: PathItem; isTarget: boolean }) {
  const custom = item.custom;
  if (custom === undefined) {
    return null;
  }
  const words = BOOKKEEPING[custom.custom_type] ?? custom.custom_type;
  return (
    <div class="notice" data-entry={item.entry_id} data-target={isTarget || undefined} tabIndex={-1}>
      <Fold
        icon={custom.custom_type === "bough.label" ? "label" : "note"}
        head={
          <>
            <span>{inert(words)}</span>
            <span class="fold-about ellipsis">{inert(firstLine(noticeText(custom)))}</span>
          </>
        }
      >
        {() => (
          <>
            <NoticeBody custom={custom} />
            {custom.custom_type === COMPACTION && <HiddenPath session={session} entry={item.entry_id} custom={custom} />}
          </>
        )}
      </Fold>
    </div>
  );
}

function NoticeBody({ custom }: { custom: CustomPayload }) {
  const summary = textField(custom.data, "summary");
  return summary === undefined ? <pre class="code">{inert(JSON.stringify(custom.data, null, 2))}</pre> : <Markdown text={summary} />;
}

function noticeText(custom: CustomPayload): string {
  const names = ["label", "summary", "model", "name", "level", "thinking_level"];
  return names.map((name) => textField(custom.data, name)).find((text) => text !== undefined) ?? "";
}

function textField(data: unknown, name: string): string | undefined {
  const value = typeof data === "object" && data !== null ? (data as Record<string, unknown>)[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

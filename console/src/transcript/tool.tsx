// A call of a tool with its result beside it, folded.

import { useState } from "preact/hooks";
import type { ContentBlock, FunctionCallBlock, PathItem } from "../api/types";
import { copyText } from "../ui/clipboard";
import { counted, duration, firstLine } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert, pictureSource } from "../ui/inert";
import { ShowAll } from "./beginning";
import { Code, languageOf } from "./code";
import { type DiffLine, editsOf, isUnifiedDiff, parseDiff } from "./diff";

interface ToolCallProps {
  call: FunctionCallBlock;
  calledAt: number | undefined;
  result: PathItem | undefined;
  isOpen: boolean;
}

export function ToolCall({ call, calledAt, result, isOpen }: ToolCallProps) {
  const message = result?.message;
  const hasFailed = message?.is_error === true;
  const took = message?.timestamp !== undefined && calledAt !== undefined ? message.timestamp - calledAt : undefined;
  return (
    <Fold
      icon="tool"
      isOpen={isOpen}
      isBad={hasFailed}
      entry={result?.entry_id}
      head={
        <>
          <strong>{inert(call.function_id)}</strong>
          <code class="fold-about ellipsis">{inert(summaryOf(call.arguments))}</code>
          <span class="fold-facts">
            {result === undefined && <span>no result yet</span>}
            {hasFailed && <span class="bad">failed</span>}
            {took !== undefined && took > 0 && <span>{duration(took)}</span>}
          </span>
        </>
      }
    >
      {() => (
        <div class="tool-body">
          <Arguments args={call.arguments} />
          {message !== undefined && (
            <Part name="Result" copied={resultText(message.content)} what="the result">
              <ResultContent content={message.content} />
            </Part>
          )}
        </div>
      )}
    </Fold>
  );
}

interface FoldProps {
  icon: "tool" | "thought" | "label" | "note";
  isOpen?: boolean;
  isBad?: boolean;
  entry?: string | undefined;
  head: preact.ComponentChildren;
  /** What is inside; made when it is first opened. */
  children: () => preact.ComponentChildren;
}

/** Something that is closed until somebody wants to see it. */
export function Fold({ icon, isOpen = false, isBad = false, entry, head, children }: FoldProps) {
  const [wasOpened, setOpened] = useState(isOpen);
  return (
    <details
      class={isBad ? "fold fold-bad" : "fold"}
      open={isOpen}
      data-entry={entry}
      onToggle={(event) => setOpened(wasOpened || event.currentTarget.open)}
    >
      <summary class="fold-head">
        <Icon name="chevron" />
        <Icon name={icon} />
        {head}
      </summary>
      {wasOpened && <div class="fold-body">{children()}</div>}
    </details>
  );
}

function Arguments({ args }: { args: unknown }) {
  const edits = editsOf(args);
  const path = fieldOf(args, PATH_NAMES);
  const written = path === undefined ? undefined : fieldOf(args, ["content", "file_text"]);
  const command = fieldOf(args, ["command", "cmd", "script"]);
  if (edits !== undefined) {
    return (
      <Part name={path ?? "Change"} copied={asText(args)} what="the arguments">
        <Diff lines={edits} />
      </Part>
    );
  }
  const text = written ?? command ?? asText(args);
  const language = written === undefined ? (command === undefined ? "json" : "bash") : languageOf(path ?? "");
  return (
    <Part name={written === undefined ? "Arguments" : (path ?? "")} copied={text} what="the arguments">
      <Code text={text} language={language} />
    </Part>
  );
}

interface PartProps {
  name: string;
  copied: string;
  /** What is copied, in words. */
  what: string;
  children: preact.ComponentChildren;
}

/** One side of a call, with a button that copies it. */
function Part({ name, copied, what, children }: PartProps) {
  return (
    <div class="tool-part">
      <div class="tool-part-head">
        <h3>{inert(name)}</h3>
        <button type="button" class="icon-button" aria-label={`Copy ${what}`} onClick={() => void copyText(copied, what)}>
          <Icon name="copy" />
        </button>
      </div>
      {children}
    </div>
  );
}

/** The texts of a result as one. */
function resultText(content: ContentBlock[]): string {
  return content.map((block) => (block.type === "text" || block.type === "thinking" ? block.text : JSON.stringify(block, null, 2))).join("\n");
}

/** Lines and characters of a difference that are drawn before somebody asks for all of it. */
const DIFF_LINES_MAX = 1_000;
const DIFF_LINE_CHARS_MAX = 10_000;

export function Diff({ lines }: { lines: DiffLine[] }) {
  const [isWhole, setWhole] = useState(false);
  const marks = { same: " ", added: "+", removed: "-", skipped: " " };
  const isCut = !isWhole && (lines.length > DIFF_LINES_MAX || lines.some((line) => line.text.length > DIFF_LINE_CHARS_MAX));
  return (
    <>
      <pre class="diff" tabIndex={0} role="group" aria-label="Difference">
        {lines.slice(0, isCut ? DIFF_LINES_MAX : undefined).map((line, at) => (
          <span key={at} class={`diff-line diff-${line.kind}`}>
            <span class="diff-mark">{marks[line.kind]}</span>
            {inert(line.text.slice(0, isCut ? DIFF_LINE_CHARS_MAX : undefined))}
            {"\n"}
          </span>
        ))}
      </pre>
      {isCut && <ShowAll what={`of ${counted(lines.length, "line")}`} onClick={() => setWhole(true)} />}
    </>
  );
}

/** What a tool answered: text as it is, because it is not written for people. */
export function ResultContent({ content }: { content: ContentBlock[] }) {
  if (content.length === 0) {
    return <p class="muted">Nothing.</p>;
  }
  return (
    <>
      {content.map((block, at) => (
        <ResultBlock key={at} block={block} />
      ))}
    </>
  );
}

function ResultBlock({ block }: { block: ContentBlock }) {
  if (block.type === "image") {
    return <Picture mime={block.mime} data={block.data} />;
  }
  const text = resultText([block]);
  if (isUnifiedDiff(text)) {
    return <Diff lines={parseDiff(text)} />;
  }
  return <Code text={text} language={looksLikeJson(text) ? "json" : ""} />;
}

export function Picture({ mime, data }: { mime: string; data: string }) {
  const source = pictureSource(mime, data);
  if (source === undefined) {
    return <p class="muted">A picture of type {inert(mime)}, which is not shown here.</p>;
  }
  return <img class="picture" src={source} alt="Picture in the message" loading="lazy" />;
}

const PATH_NAMES = ["path", "file_path", "filePath", "file", "filename"];

/** The argument that says most about a call. */
function summaryOf(args: unknown): string {
  if (typeof args === "string") {
    return firstLine(args);
  }
  const told = fieldOf(args, ["command", "cmd", ...PATH_NAMES, "query", "pattern", "url", "task", "prompt"]);
  return firstLine(told ?? (isEmpty(args) ? "" : asText(args).replace(/\s+/g, " "))).slice(0, 200);
}

function isEmpty(args: unknown): boolean {
  return args === null || args === undefined || (typeof args === "object" && Object.keys(args).length === 0);
}

function fieldOf(args: unknown, names: string[]): string | undefined {
  if (typeof args !== "object" || args === null) {
    return undefined;
  }
  const value = names.map((name) => (args as Record<string, unknown>)[name]).find((found) => typeof found === "string");
  return typeof value === "string" ? value : undefined;
}

function asText(args: unknown): string {
  return typeof args === "string" ? args : (JSON.stringify(args, null, 2) ?? "");
}

function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

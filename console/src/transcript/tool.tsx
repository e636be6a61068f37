// A call of a tool with its result beside it, folded.

import { useState } from "preact/hooks";
import type { ContentBlock, FunctionCallBlock, PathItem } from "../api/types";
import { duration, firstLine } from "../ui/format";
import { Icon } from "../ui/icons";
import { inert, pictureSource } from "../ui/inert";
import { Code, languageOf } from "./code";
import { type DiffLine, editsOf } from "./diff";

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
            <div class="tool-result">
              <h3>Result</h3>
              <ResultContent content={message.content} />
            </div>
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
  if (edits !== undefined) {
    return (
      <div class="tool-arguments">
        <h3>{inert(path ?? "Change")}</h3>
        <Diff lines={edits} />
      </div>
    );
  }
  const written = fieldOf(args, ["content", "file_text"]);
  if (path !== undefined && written !== undefined) {
    return (
      <div class="tool-arguments">
        <h3>{inert(path)}</h3>
        <Code text={written} language={languageOf(path)} />
      </div>
    );
  }
  const command = fieldOf(args, ["command", "cmd", "script"]);
  return (
    <div class="tool-arguments">
      <h3>Arguments</h3>
      {command === undefined ? <Code text={asText(args)} language="json" /> : <Code text={command} language="bash" />}
    </div>
  );
}

export function Diff({ lines }: { lines: DiffLine[] }) {
  const marks = { same: " ", added: "+", removed: "-", skipped: " " };
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label="Difference">
      {lines.map((line, at) => (
        <span key={at} class={`diff-line diff-${line.kind}`}>
          <span class="diff-mark">{marks[line.kind]}</span>
          {inert(line.text)}
          {"\n"}
        </span>
      ))}
    </pre>
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
  const text = block.type === "text" || block.type === "thinking" ? block.text : JSON.stringify(block, null, 2);
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

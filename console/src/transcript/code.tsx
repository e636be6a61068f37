// Code with its colours and a button that copies it.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { copyText } from "../ui/clipboard";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";

const lowlight = createLowlight({ bash, cpp, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml });

/** Longer code stays without colours. */
const COLOURED_CHARS_MAX = 50_000;

export function CodeBlock({ text, language }: { text: string; language: string }) {
  const name = language.trim().split(/\s/, 1)[0]?.toLowerCase() ?? "";
  return (
    <div class="code-box">
      <div class="code-head">
        <span class="muted">{inert(name)}</span>
        <button type="button" class="icon-button" aria-label="Copy code" onClick={() => void copyText(text, "the code")}>
          <Icon name="copy" />
        </button>
      </div>
      <Code text={text} language={name} />
    </div>
  );
}

export function Code({ text, language }: { text: string; language: string }) {
  const coloured = useMemo(() => colour(text, language), [text, language]);
  return (
    <pre class="code" tabIndex={0} role="group" aria-label="Code">
      <code>{coloured}</code>
    </pre>
  );
}

interface CodeNode {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: CodeNode[];
}

function colour(text: string, language: string): ComponentChildren {
  if (text.length > COLOURED_CHARS_MAX || !lowlight.registered(language)) {
    return inert(text);
  }
  return nodes(lowlight.highlight(language, text).children as CodeNode[]);
}

function nodes(children: CodeNode[]): ComponentChildren {
  return children.map((node, at) => {
    if (node.type === "text") {
      return inert(node.value ?? "");
    }
    const names = node.properties?.className;
    return (
      <span key={at} class={Array.isArray(names) ? names.join(" ") : undefined}>
        {nodes(node.children ?? [])}
      </span>
    );
  });
}

/** The language of a file by its name. */
export function languageOf(path: string): string {
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  const known: Record<string, string> = { rs: "rust", py: "python", ts: "typescript", tsx: "typescript", js: "javascript", mjs: "javascript", sh: "bash", yml: "yaml", toml: "ini", html: "xml", c: "cpp", h: "cpp" };
  return known[ending] ?? ending;
}

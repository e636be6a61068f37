// Code with its colours and a button that copies it.

import { useMemo } from "preact/hooks";
import { colours } from "../parts";
import { copyText } from "../ui/clipboard";
import { Icon } from "../ui/icons";
import { inert } from "../ui/inert";
import { useLazy } from "../ui/lazy";
import { Beginning } from "./beginning";

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

/** Code is there at once; its colours come when the part of the program that knows them has been loaded. */
export function Code({ text, language }: { text: string; language: string }) {
  return (
    <Beginning text={text}>
      {(shown) => (
        <pre class="code" tabIndex={0} role="group" aria-label="Code">
          <code>{language === "" || shown.length > COLOURED_CHARS_MAX ? inert(shown) : <Coloured text={shown} language={language} />}</code>
        </pre>
      )}
    </Beginning>
  );
}

function Coloured({ text, language }: { text: string; language: string }) {
  const { module } = useLazy(colours);
  const coloured = useMemo(() => module?.colour(text, language), [module, text, language]);
  return <>{coloured ?? inert(text)}</>;
}

/** The language of a file by its name. */
export function languageOf(path: string): string {
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  const known: Record<string, string> = { rs: "rust", py: "python", ts: "typescript", tsx: "typescript", js: "javascript", mjs: "javascript", sh: "bash", yml: "yaml", toml: "ini", html: "xml", c: "cpp", h: "cpp" };
  return known[ending] ?? ending;
}

// Markdown to elements. The text is cut into tokens, and each token becomes an element with text in it: no HTML is ever
// parsed, so nothing in a message can become one. Raw HTML is shown as the text that it is.

import type { ComponentChildren } from "preact";
import type { Token, Tokens } from "marked";
import { inert, safeHref } from "../ui/inert";
import { Beginning, SHOWN_CHARS } from "./beginning";
import { CodeBlock } from "./code";
import { markdownTokens } from "./markdown_tokens";

export function Markdown({ text }: { text: string }) {
  // Longer texts are shown as they are: cutting them into tokens would block the page.
  const tokens = text.length > SHOWN_CHARS ? undefined : markdownTokens(text);
  if (tokens === undefined) {
    return <Beginning text={text}>{(shown) => <pre class="plain">{inert(shown)}</pre>}</Beginning>;
  }
  return <div class="markdown">{blocks(tokens)}</div>;
}

function blocks(tokens: Token[]): ComponentChildren {
  return tokens.map((token, at) => block(token as Tokens.Generic, at));
}

function block(token: Tokens.Generic, key: number): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // One level below the message: a message need not begin with its largest heading.
      return (
        <h3 key={key} class={`heading-${token["depth"]}`}>
          {inline(token.tokens)}
        </h3>
      );
    case "paragraph":
      return <p key={key}>{inline(token.tokens)}</p>;
    case "code":
      return <CodeBlock key={key} text={token["text"]} language={token["lang"] ?? ""} />;
    case "blockquote":
      return <blockquote key={key}>{blocks(token.tokens ?? [])}</blockquote>;
    case "list":
      return <List key={key} list={token as Tokens.List} />;
    case "table":
      return <Table key={key} table={token as Tokens.Table} />;
    case "hr":
      return <hr key={key} />;
    case "text":
      return token.tokens === undefined ? inert(token["text"]) : <span key={key}>{inline(token.tokens)}</span>;
    default:
      return (
        <p key={key} class="plain">
          {inert(token.raw)}
        </p>
      );
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, at) => (
    <li key={at} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "Done" : "Open"} />}
      {blocks(item.tokens.filter((token) => token.type !== "checkbox"))}
    </li>
  ));
  return list.ordered ? <ol start={list.start === "" ? 1 : list.start}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }) {
  const align = (at: number) => ({ textAlign: table.align[at] ?? "left" });
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, at) => (
              <th key={at} style={align(at)}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, at) => (
                <td key={at} style={align(at)}>
                  {inline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, at) => span(token as Tokens.Generic, at));
}

function span(token: Tokens.Generic, key: number): ComponentChildren {
  switch (token.type) {
    case "text":
      return token.tokens === undefined ? inert(unescaped(token["text"])) : inline(token.tokens);
    case "escape":
      return inert(token["text"]);
    case "strong":
      return <strong key={key}>{inline(token.tokens)}</strong>;
    case "em":
      return <em key={key}>{inline(token.tokens)}</em>;
    case "del":
      return <del key={key}>{inline(token.tokens)}</del>;
    case "codespan":
      return <code key={key}>{inert(token["text"])}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return <Link key={key} href={token["href"]} children={inline(token.tokens)} />;
    case "image":
      // Fetching it would tell its server who reads this.
      return <Link key={key} href={token["href"]} children={`Picture: ${inert(token["text"] || token["href"])}`} />;
    default:
      return inert(token.raw);
  }
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  const safe = safeHref(href);
  if (safe === undefined) {
    return <span title={inert(href)}>{children}</span>;
  }
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };

/** The entities that people write in Markdown, as the characters that they mean. */
function unescaped(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity);
}

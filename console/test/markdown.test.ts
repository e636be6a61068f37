import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToString } from "preact-render-to-string";
import { h } from "preact";
import { Markdown } from "../src/transcript/markdown";
import { markdownTokens } from "../src/transcript/markdown_tokens";

const drawn = (text: string) => renderToString(h(Markdown, { text }));

test("Markdown becomes elements", () => {
  assert.match(drawn("# A\n\n> b **c**\n\n1. d\n   - e"), /<h3 class="heading-1">A<\/h3>.*<blockquote><p>b <strong>c<\/strong><\/p><\/blockquote>.*<ol start="1"><li>.*<ul><li>/s);
});

test("a text that nests without end stays readable", () => {
  const lists = Array.from({ length: 200 }, (_, depth) => `${" ".repeat(2 * depth)}- x${depth}`).join("\n");
  for (const text of [`${">".repeat(50_000)}end`, `${"- ".repeat(20_000)}end`, `${lists}\nend`, `${"> - ".repeat(200)}end`]) {
    assert.match(drawn(text), /end/, text.slice(0, 40));
  }
});

test("a line of marks without end is text", () => {
  const text = "_a".repeat(40_000);
  assert.ok(drawn(text).includes(text));
});

test("what would be too many elements is text", () => {
  const fences = "```\n".repeat(20_000);
  const table = `${"|a".repeat(4_000)}|\n${"|-".repeat(4_000)}|\n${"|b".repeat(4_000)}|\n${"|c".repeat(4_000)}|`;
  assert.equal(markdownTokens(fences), undefined);
  assert.equal(markdownTokens(table), undefined);
  assert.match(drawn(fences), /^<pre class="plain">/);
});

test("of a very long text the beginning is drawn, with a way to the rest", () => {
  const html = drawn("x".repeat(5_000_000));
  assert.ok(html.length < 200_000, `${html.length} characters`);
  assert.match(html, /Show all 5,000,000 characters/);
});

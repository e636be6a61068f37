import assert from "node:assert/strict";
import { test } from "node:test";
import { inert, pictureSource, safeHref } from "../src/ui/inert";

test("characters that act on their surroundings are shown", () => {
  assert.equal(inert("a\u202Eb"), "a[U+202E]b");
  assert.equal(inert("\u001b[31m"), "[U+001B][31m");
  assert.equal(inert("a\u200Bb\u2060c\uFEFFd\u{E0041}"), "a[U+200B]b[U+2060]c[U+FEFF]d[U+E0041]");
  assert.equal(inert("🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}"), "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}", "a flag stays a flag");
  assert.equal(inert("tab\tline\nend"), "tab\tline\nend");
  assert.equal(inert("שלום 👩‍👩‍👧 ü"), "שלום 👩‍👩‍👧 ü");
});

test("towers of marks are cut, and letters of all scripts stay", () => {
  assert.equal(inert(`e${"\u0301".repeat(50_000)}f`), `e${"\u0301".repeat(8)}[49992 more marks]f`);
  const scripts = "é Việt \u05d1\u05b0\u05bc\u05e8\u05b5\u05d0 \u0915\u094d\u0937\u093f \u0f66\u0f92\u0fb2\u0f74\u0f56 ❤\ufe0f";
  assert.equal(inert(scripts), scripts);
});

test("only addresses of pages and letters can be followed", () => {
  assert.equal(safeHref("https://example.org/a b"), "https://example.org/a%20b");
  assert.equal(safeHref("mailto:a@example.org"), "mailto:a@example.org");
  for (const bad of ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "vbscript:x", "//example.org", "/v1/sessions", "#/sessions", "file:///etc/passwd"]) {
    assert.equal(safeHref(bad), undefined, bad);
  }
});

test("only pictures that run nothing are shown", () => {
  assert.equal(pictureSource("image/png", "AAAA"), "data:image/png;base64,AAAA");
  assert.equal(pictureSource("image/svg+xml", "AAAA"), undefined);
  assert.equal(pictureSource("text/html", "AAAA"), undefined);
  assert.equal(pictureSource("image/png", 'AA" onerror="x'), undefined);
});

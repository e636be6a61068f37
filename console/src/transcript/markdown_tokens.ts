// Markdown cut into tokens, within bounds: a text that nests without end would be one call within another, until there is no room
// for the next, and one long line of marks would take seconds.

import { Lexer, type Token, type Tokens, type TokensList } from "marked";

/** What is nested deeper than this, and what is in longer pieces, stays the text that it is. */
const DEPTH_MAX = 20;
const INLINE_CHARS_MAX = 20_000;

/** More than this takes the browser seconds to draw. */
const ELEMENTS_MAX = 10_000;
/** A block of code has a head with a button. */
const CODE_ELEMENTS = 10;

/** The tokens of a text; nothing where they are too many to be drawn. */
export function markdownTokens(text: string): Token[] | undefined {
  const tokens: Token[] = new BoundedLexer().lex(text);
  return elements(tokens) > ELEMENTS_MAX ? undefined : tokens;
}

/** About how many elements tokens become. */
function elements(tokens: Token[] | undefined): number {
  return (tokens ?? []).reduce((sum, token) => sum + elementsOf(token as Tokens.Generic), 0);
}

function elementsOf(token: Tokens.Generic): number {
  switch (token.type) {
    case "code":
      return CODE_ELEMENTS;
    case "list":
      return elements((token as Tokens.List).items);
    case "table":
      return [(token as Tokens.Table).header, ...(token as Tokens.Table).rows].flat().reduce((sum, cell) => sum + 1 + elements(cell.tokens), 0);
    default:
      return 1 + elements(token.tokens);
  }
}

class BoundedLexer extends Lexer {
  private depth = 0;

  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], isClipped = false): Token[] {
    return this.within(src, tokens, "plain", () => super.blockTokens(src, tokens, isClipped));
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    return src.length > INLINE_CHARS_MAX ? withText(tokens, "text", src) : this.within(src, tokens, "text", () => super.inlineTokens(src, tokens));
  }

  private within(src: string, tokens: Token[], type: string, cut: () => Token[]): Token[] {
    if (this.depth >= DEPTH_MAX) {
      return withText(tokens, type, src);
    }
    this.depth += 1;
    const found = cut();
    this.depth -= 1;
    return found;
  }
}

function withText(tokens: Token[], type: string, text: string): Token[] {
  tokens.push({ type, raw: text, text });
  return tokens;
}

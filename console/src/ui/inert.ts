// Text from outside, made safe to look at. Nothing here is about HTML: text is only ever put into text nodes.

/** Flags of regions are written with tags; elsewhere tags are text that nobody sees. */
const FLAG = "\\u{1F3F4}[\\u{E0020}-\\u{E007E}]+\\u{E007F}";
const CONTROL = "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]";
const INVISIBLE = "[\\u180e\\u200b\\u2028\\u2029\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb\\u{E0000}-\\u{E007F}]";
/** No script stacks this many marks on a letter; more of them are drawn over the lines around, and take the browser seconds. */
const MARKS_MAX = 8;
const MARKS = `\\p{M}{${MARKS_MAX + 1},}`;
const SHOWN = new RegExp(`${FLAG}|${CONTROL}|${INVISIBLE}|${MARKS}`, "gu");

/**
 * Shows the characters that would act on their surroundings instead of being read: terminal escapes, marks that
 * reverse the direction of the text around them, those that hide in it, and towers of marks that cover it.
 */
export function inert(text: string): string {
  return text.replace(SHOWN, (found) => {
    const code = found.codePointAt(0) ?? 0;
    if (/^\p{M}{2}/u.test(found)) {
      const marks = [...found];
      return `${marks.slice(0, MARKS_MAX).join("")}[${marks.length - MARKS_MAX} more marks]`;
    }
    return code === 0x1f3f4 ? found : `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}

/** Only addresses that open a page or a letter may be followed; anything else stays text. */
export function safeHref(href: string): string | undefined {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Pictures that a browser draws without running anything. */
const PICTURE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

export function pictureSource(mime: string, data: string): string | undefined {
  const isPicture = PICTURE_TYPES.includes(mime) && /^[A-Za-z0-9+/=\s]*$/.test(data);
  return isPicture ? `data:${mime};base64,${data}` : undefined;
}

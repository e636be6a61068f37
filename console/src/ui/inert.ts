// Text from outside, made safe to look at. Nothing here is about HTML: text is only ever put into text nodes.

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Shows the characters that would act on their surroundings instead of being read: terminal escapes, and marks that
 * reverse the direction of the text around them.
 */
export function inert(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase();
    return `[U+${code.padStart(4, "0")}]`;
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

import { inert } from "./inert";

/** A sentence in which names stand between backquotes, such as a command or a field. */
export function WithCode({ text }: { text: string }) {
  return <>{text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 0 ? inert(part) : <code key={at}>{inert(part)}</code>))}</>;
}

// Two texts line by line, and the edits that tools of coding agents are called with.

export interface DiffLine {
  kind: "same" | "added" | "removed" | "skipped";
  text: string;
}

/** Pairs of lines that are compared at most; beyond that the middle is shown as replaced. */
const PAIRS_MAX = 400_000;
/** Equal lines that are shown around a change. */
const CONTEXT_LINES = 3;

export function lineDiff(before: string, after: string): DiffLine[] {
  const old = before === "" ? [] : before.split("\n");
  const now = after === "" ? [] : after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) {
    start += 1;
  }
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) {
    end += 1;
  }
  const head = old.slice(0, start).map(same);
  const tail = old.slice(old.length - end).map(same);
  const middle = middleDiff(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return shortened([...head, ...middle, ...tail]);
}

function same(text: string): DiffLine {
  return { kind: "same", text };
}

/** The longest common lines stay; the rest was removed or added. */
function middleDiff(old: string[], now: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (old.length * now.length > PAIRS_MAX) {
    return [...old.map(removed), ...now.map(added)];
  }
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    const [left, right] = [old[i], now[j]];
    if (left !== undefined && left === right) {
      lines.push(same(left));
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(left));
      i += 1;
    } else if (right !== undefined) {
      lines.push(added(right));
      j += 1;
    }
  }
  return lines;
}

/** Leaves out equal lines that are far from any change. */
function shortened(lines: DiffLine[]): DiffLine[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.kind !== "same") {
      isNear.fill(1, Math.max(0, at - CONTEXT_LINES), at + CONTEXT_LINES + 1);
    }
  });
  const shown: DiffLine[] = [];
  lines.forEach((line, at) => {
    if (isNear[at] === 1) {
      shown.push(line);
    } else if (shown.at(-1)?.kind !== "skipped") {
      shown.push({ kind: "skipped", text: "…" });
    }
  });
  return shown;
}

/** The head of a part of a unified diff, with the numbers of lines that it has of both files. */
const PART = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
/** What stands between parts: in a patch for `apply_patch` and in other diffs. */
const PATCH_HEAD = /^(@@|\*\*\*)/;
const HEAD = /^(@@|---|\+\+\+|\*\*\*|diff |index |new file|deleted file|rename |similarity )/;

/** The lines of a diff that a tool wrote itself: a unified diff, or what `apply_patch` takes. */
export function parseDiff(text: string): DiffLine[] {
  // How many lines of both files are to come: within a part, what looks like a head is a changed line.
  let [old, now] = [0, 0];
  const head = text.startsWith("*** Begin Patch") ? PATCH_HEAD : HEAD;
  return text.split("\n").map((line) => {
    const part = PART.exec(line);
    if (old <= 0 && now <= 0 && part !== null) {
      [old, now] = [Number(part[1] ?? 1), Number(part[2] ?? 1)];
      return { kind: "skipped", text: line };
    }
    if (old <= 0 && now <= 0 && head.test(line)) {
      return { kind: "skipped", text: line };
    }
    old -= line.startsWith("+") ? 0 : 1;
    now -= line.startsWith("-") ? 0 : 1;
    if (line.startsWith("+")) {
      return { kind: "added", text: line.slice(1) };
    }
    return line.startsWith("-") ? { kind: "removed", text: line.slice(1) } : { kind: "same", text: line.replace(/^ /, "") };
  });
}

/** Whether a text is a unified diff, such as the answer of `git diff`. */
export function isUnifiedDiff(text: string): boolean {
  return /^--- .*\n\+\+\+ .*\n@@ -\d/m.test(text);
}

/** The patch in a text for `apply_patch`, which may be a command with a patch in it. */
function patchIn(text: string): string | undefined {
  return /^\*\*\* Begin Patch$[^]*?^\*\*\* End Patch$/m.exec(text)?.[0];
}

const OLD_NAMES = ["old_string", "old_text", "oldText", "old_str"];
const NEW_NAMES = ["new_string", "new_text", "newText", "new_str"];
const PATCH_NAMES = ["patch", "diff"];
/** What may hold a patch among other things. */
const PATCH_HOLDERS = ["input", "command", "cmd", "script"];

/** The changes that a call asks for, if it is one that edits a file. */
export function editsOf(args: unknown): DiffLine[] | undefined {
  if (typeof args === "string") {
    const patch = patchIn(args);
    return patch === undefined ? undefined : parseDiff(patch);
  }
  if (typeof args !== "object" || args === null) {
    return undefined;
  }
  const fields = args as Record<string, unknown>;
  const patch = textOf(fields, PATCH_NAMES) ?? patchIn(textOf(fields, PATCH_HOLDERS) ?? "");
  if (patch !== undefined) {
    return parseDiff(patch);
  }
  if (Array.isArray(fields["edits"])) {
    const parts = fields["edits"].map(replacement).filter((part) => part !== undefined);
    return parts.length === 0 ? undefined : parts.flat();
  }
  return replacement(fields);
}

function replacement(fields: unknown): DiffLine[] | undefined {
  if (typeof fields !== "object" || fields === null) {
    return undefined;
  }
  const before = textOf(fields as Record<string, unknown>, OLD_NAMES);
  const after = textOf(fields as Record<string, unknown>, NEW_NAMES);
  return before === undefined || after === undefined ? undefined : lineDiff(before, after);
}

function textOf(fields: Record<string, unknown>, names: string[]): string | undefined {
  const value = names.map((name) => fields[name]).find((value) => typeof value === "string");
  return typeof value === "string" ? value : undefined;
}

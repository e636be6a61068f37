// The entries of a recording, read from both of its ends as far as somebody looks.

import type { LoopEntry, LoopEntryPage } from "../api/loops";

export interface EntryQuery {
  limit: number;
  order: "oldest" | "newest";
  cursor?: string;
}

/** One of the two ends, and how far the entries are known from it. */
interface End {
  order: EntryQuery["order"];
  cursor: string | undefined;
  isBegun: boolean;
  /** The times of the page that was read last. */
  earliest: number;
  latest: number;
}

/** When a loop ran; `Infinity` is the end of one that runs. */
export interface Stretch {
  start: number;
  end: number;
}

const PAGE = 500;

export class RecordedEntries {
  private readonly byId = new Map<string, LoopEntry>();
  private readonly ends = [endOf("oldest"), endOf("newest")] as const;
  /** Whether the two ends have met. */
  private isWhole = false;

  constructor(private readonly read: (query: EntryQuery) => Promise<LoopEntryPage>) {}

  /** What is known, in the order in which it was said. */
  known(): LoopEntry[] {
    return [...this.byId.values()].sort((a, b) => a.timestamp - b.timestamp);
  }

  /**
   * Whether all that was said in a stretch of time is known. The last page of an end is not counted, because entries of
   * loops that run side by side are not quite in the order of their times.
   */
  has({ start, end }: Stretch): boolean {
    const [oldest, newest] = this.ends;
    return this.isWhole || end < oldest.earliest || (newest.isBegun && start > newest.latest);
  }

  /** Reads one more page towards a stretch, from the end that is nearer. */
  async readTowards({ start }: Stretch): Promise<void> {
    const [oldest, newest] = this.ends;
    if (!newest.isBegun || !oldest.isBegun) {
      await this.readPage(oldest.isBegun ? newest : oldest);
    } else {
      await this.readPage(start - oldest.latest <= newest.earliest - start ? oldest : newest);
    }
  }

  /** Reads what was said since the last time. */
  async readNews(): Promise<void> {
    const [oldest, newest] = this.ends;
    if (!oldest.isBegun) {
      await this.readPage(oldest);
      return;
    }
    if (!newest.isBegun && !this.isWhole) {
      await this.readPage(newest);
      return;
    }
    let cursor: string | undefined;
    do {
      const page = await this.read(query("newest", cursor));
      const isMet = page.entries.some((entry) => this.byId.has(entry.entry_id));
      this.keep(page.entries);
      cursor = isMet ? undefined : page.next_cursor;
    } while (cursor !== undefined);
  }

  private async readPage(end: End): Promise<void> {
    const page = await this.read(query(end.order, end.cursor));
    const isMet = page.entries.some((entry) => this.byId.has(entry.entry_id));
    this.keep(page.entries);
    const times = page.entries.map((entry) => entry.timestamp);
    Object.assign(end, { isBegun: true, cursor: page.next_cursor, earliest: Math.min(...times), latest: Math.max(...times) });
    this.isWhole ||= isMet || page.next_cursor === undefined;
  }

  private keep(entries: LoopEntry[]): void {
    for (const entry of entries) {
      this.byId.set(entry.entry_id, entry);
    }
  }
}

function endOf(order: EntryQuery["order"]): End {
  return { order, cursor: undefined, isBegun: false, earliest: -Infinity, latest: order === "oldest" ? -Infinity : Infinity };
}

function query(order: EntryQuery["order"], cursor: string | undefined): EntryQuery {
  return cursor === undefined ? { limit: PAGE, order } : { limit: PAGE, order, cursor };
}

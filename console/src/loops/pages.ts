// All loops of a recording, page by page. Pages that nothing happened in are not read again.

import type { LoopsPage, LoopSummary } from "../api/loops";

interface Page {
  /** Where it begins. */
  cursor: string | undefined;
  loops: LoopSummary[];
}

export class LoopPages {
  private pages: Page[] = [];
  /** Whether nothing that was read can be trusted. */
  private areAllStale = false;

  constructor(private readonly read: (cursor: string | undefined) => Promise<LoopsPage>) {}

  known(): LoopSummary[] {
    return this.pages.flatMap((page) => page.loops);
  }

  /** Reads everything again the next time; what is being read now goes on to its end. */
  forget(): void {
    this.areAllStale = true;
  }

  /** Reads the last page, those behind it, and those with loops that changed. */
  async readNews(changed: ReadonlySet<string>, onPage: () => void): Promise<void> {
    if (this.areAllStale) {
      this.areAllStale = false;
      this.pages = [];
    }
    const stale = this.touchedBy(changed);
    const last = this.pages.length - 1;
    let cursor = this.pages[last]?.cursor;
    for (let at = Math.max(0, last); ; at += 1) {
      const page = await this.read(cursor);
      this.pages[at] = { cursor, loops: page.loops };
      onPage();
      cursor = page.next_cursor;
      if (cursor === undefined) {
        break;
      }
    }
    // A loop that is new tells its relatives only now.
    for (const at of new Set([...stale, ...this.touchedBy(changed)])) {
      const page = this.pages[at];
      if (page !== undefined && at < last) {
        page.loops = (await this.read(page.cursor)).loops;
      }
    }
  }

  /** The pages with these loops, what they continue, and what runs beside them. */
  private touchedBy(changed: ReadonlySet<string>): number[] {
    const ids = new Set(changed);
    for (const loop of this.known()) {
      if (changed.has(loop.loop_id)) {
        [loop.parent_loop_id, ...(loop.group?.loop_ids ?? [])].forEach((id) => id !== undefined && ids.add(id));
      }
    }
    return this.pages.flatMap((page, at) => (page.loops.some((loop) => ids.has(loop.loop_id)) ? [at] : []));
  }
}

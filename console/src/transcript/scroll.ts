// Keeps the reader's place while the content around it changes.

import { useLayoutEffect, useRef } from "preact/hooks";

/** This close to the end the reader follows what comes. */
const END_PIXELS = 60;
/** This close to an end of what is loaded, more is asked for. */
const AHEAD_PIXELS = 1_500;

interface Anchor {
  entry: string;
  /** From the top of the box to the top of the entry. */
  offset: number;
}

export interface ScrollHandlers {
  onNearTop: () => void;
  onNearEnd: () => void;
  /** Whether the end of what is loaded is the end of the path. */
  isEndLoaded: () => boolean;
  /** Whether the newest entries are in sight. */
  onEnd: (isAtEnd: boolean) => void;
}

export class ScrollKeeper {
  private anchor: Anchor | undefined;
  private followsEnd = true;

  constructor(
    readonly box: HTMLElement,
    private readonly content: HTMLElement,
    private readonly handlers: ScrollHandlers,
  ) {}

  /** The reader scrolled, or we did. */
  scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < END_PIXELS && this.handlers.isEndLoaded();
    if (isAtEnd !== this.followsEnd) {
      this.followsEnd = isAtEnd;
      this.handlers.onEnd(isAtEnd);
    }
    this.anchor = this.firstInSight();
    this.askForMore();
  }

  /** The content changed: put the reader's place back to where it was. */
  changed(): void {
    if (this.followsEnd && this.handlers.isEndLoaded()) {
      this.box.scrollTop = this.box.scrollHeight;
    } else if (this.anchor !== undefined) {
      const element = this.find(this.anchor.entry);
      if (element !== null) {
        this.box.scrollTop += this.offsetOf(element) - this.anchor.offset;
      }
    }
    this.askForMore();
  }

  toEnd(): void {
    this.followsEnd = true;
    this.handlers.onEnd(true);
    this.box.scrollTop = this.box.scrollHeight;
  }

  /** Puts an entry a little below the top. Says whether it is there. */
  toEntry(entry: string): boolean {
    const element = this.find(entry);
    if (element === null) {
      return false;
    }
    this.followsEnd = false;
    this.handlers.onEnd(false);
    this.box.scrollTop += this.offsetOf(element) - this.box.clientHeight / 5;
    this.anchor = { entry, offset: this.offsetOf(element) };
    return true;
  }

  /** The entries in the order of the page. */
  entries(): HTMLElement[] {
    return [...this.content.querySelectorAll<HTMLElement>(":scope > [data-entry]")];
  }

  private find(entry: string): HTMLElement | null {
    return this.content.querySelector<HTMLElement>(`[data-entry="${CSS.escape(entry)}"]`);
  }

  private offsetOf(element: HTMLElement): number {
    return element.getBoundingClientRect().top - this.box.getBoundingClientRect().top;
  }

  private firstInSight(): Anchor | undefined {
    const elements = this.entries();
    let [low, high] = [0, elements.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const element = elements[middle];
      if (element !== undefined && this.offsetOf(element) + element.offsetHeight <= 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const found = elements[low];
    return found === undefined ? undefined : { entry: found.dataset["entry"] ?? "", offset: this.offsetOf(found) };
  }

  private askForMore(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    if (scrollTop < AHEAD_PIXELS) {
      this.handlers.onNearTop();
    }
    if (scrollHeight - scrollTop - clientHeight < AHEAD_PIXELS) {
      this.handlers.onNearEnd();
    }
  }
}

/** A keeper for the box and the content that are given these references. */
export function useScrollKeeper(handlers: ScrollHandlers, items: unknown) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const keeper = useRef<ScrollKeeper | undefined>(undefined);
  const current = useRef(handlers);
  current.current = handlers;
  useLayoutEffect(() => {
    if (box.current === null || content.current === null) {
      return;
    }
    const made = new ScrollKeeper(box.current, content.current, {
      onNearTop: () => current.current.onNearTop(),
      onNearEnd: () => current.current.onNearEnd(),
      isEndLoaded: () => current.current.isEndLoaded(),
      onEnd: (isAtEnd) => current.current.onEnd(isAtEnd),
    });
    keeper.current = made;
    const observer = new ResizeObserver(() => made.changed());
    observer.observe(content.current);
    observer.observe(box.current);
    const onScroll = () => made.scrolled();
    made.box.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      made.box.removeEventListener("scroll", onScroll);
    };
  }, []);
  // Other entries may take the same room: the observer does not see that.
  useLayoutEffect(() => keeper.current?.changed(), [items]);
  return { box, content, keeper };
}

// Drags with one pointer, and pinches with two fingers.

interface Point {
  x: number;
  y: number;
}

interface Moves {
  /** The picture goes along with the pointers, by these pixels. */
  onMove: (dx: number, dy: number) => void;
  /** Two fingers go apart or together around a place of the window. */
  onPinch: (factor: number, at: Point) => void;
}

/** A pointer that moves this far drags, and chooses nothing. */
const DRAG_MIN = 4;

export class Gestures {
  private readonly pointers = new Map<number, Point>();
  private start: Point = { x: 0, y: 0 };
  /** Whether the last press was a drag: the click at its end chooses nothing. */
  hasDragged = false;

  down(event: PointerEvent): void {
    if (event.isPrimary) {
      this.pointers.clear();
      this.start = pointOf(event);
      this.hasDragged = false;
    }
    this.pointers.set(event.pointerId, pointOf(event));
  }

  move(event: PointerEvent, { onMove, onPinch }: Moves): void {
    if (!this.pointers.has(event.pointerId)) {
      return;
    }
    const before = [...this.pointers.values()];
    this.pointers.set(event.pointerId, pointOf(event));
    const now = [...this.pointers.values()];
    if (!this.hasDragged && now.length === 1 && distance(this.start, pointOf(event)) < DRAG_MIN) {
      this.pointers.set(event.pointerId, before[0] ?? pointOf(event));
      return;
    }
    this.hasDragged = true;
    // A drag goes on outside of the picture.
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    const [from, to] = [middle(before), middle(now)];
    onMove(to.x - from.x, to.y - from.y);
    const [apartBefore, apart] = [spread(before), spread(now)];
    if (apartBefore > 0 && apart > 0) {
      onPinch(apart / apartBefore, to);
    }
  }

  up(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
  }
}

function pointOf(event: PointerEvent): Point {
  return { x: event.clientX, y: event.clientY };
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

/** Between the first two of the pointers, or where the only one is. */
function middle([first = { x: 0, y: 0 }, second = first]: Point[]): Point {
  return { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 };
}

function spread([first, second]: Point[]): number {
  return first === undefined || second === undefined ? 0 : distance(first, second);
}

// State that views show: a value, and whoever wants to know when it changes.

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (value === this.value) {
      return;
    }
    this.value = value;
    for (const listener of [...this.listeners]) {
      listener();
    }
  }

  update(change: (value: T) => T): void {
    this.set(change(this.value));
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

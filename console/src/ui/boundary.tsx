// Keeps what cannot be drawn, such as an answer of a newer server, from taking everything around it away.

import { Component, type ComponentChildren } from "preact";

interface BoundaryProps {
  /** What is shown in the place of the children when drawing them fails. */
  fallback: ComponentChildren;
  children: ComponentChildren;
}

export class Boundary extends Component<BoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError(error: unknown): { hasFailed: boolean } {
    console.error(error);
    return { hasFailed: true };
  }

  override render({ fallback, children }: BoundaryProps) {
    return this.state.hasFailed ? fallback : children;
  }
}

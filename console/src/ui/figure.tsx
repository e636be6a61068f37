/** A number that one looks for first, with what it says. */
export function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd class="figure-value">{value}</dd>
      <dd class="muted">{about}</dd>
    </div>
  );
}

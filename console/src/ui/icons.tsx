// Line icons, 16 by 16. They are decoration: whoever shows one gives the text.

const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  more: "M3.2 8h.4M7.8 8h.4M12.4 8h.4",
  close: "m4 4 8 8M12 4l-8 8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  link: "M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.3 4.3l-1 1M9 11.5l-1 1a3 3 0 0 1-4.3-4.3l1-1",
  edit: "m3 13 .6-2.8L11 2.8 13.2 5l-7.4 7.4L3 13Z",
  branch: "M4.5 5.5v5M4.5 10.5c0-4 7-1.5 7-5M4.5 5.5a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2Zm7 0a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2Zm-7 8.2a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2Z",
  chevron: "m6 4 4 4-4 4",
  left: "m10 4-4 4 4 4",
  down: "M8 3v10m-4-4 4 4 4-4",
  up: "M8 13V3M4 7l4-4 4 4",
  send: "M2.5 8 13.5 3l-3 10.5-2.6-4.4L2.5 8Z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
  system: "M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3",
  keys: "M1.5 4h13v8h-13zM4 6.5h.01M6.5 6.5h.01M9 6.5h.01M11.8 6.5h.01M5 9.5h6",
  archive: "M2 3h12v3H2zM3 6v7.5h10V6M6.5 8.5h3",
  fork: "M8 14V9.5M8 9.5c0-3-4-2-4-5.2M8 9.5c0-3 4-2 4-5.2M2.2 5.8 4 3.6l1.8 2.2M10.2 5.8 12 3.6l1.8 2.2",
  label: "M2.5 8V2.5H8l5.5 5.5L8 13.5 2.5 8ZM5.3 5.3h.01",
  note: "M3.5 2.5h9v11h-9zM6 5.5h4M6 8h4M6 10.5h2",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9",
  filter: "M2 3.5h12M4.5 8h7M6.5 12.5h3",
  tool: "M10 2.2a3.4 3.4 0 0 0-3.2 4.5L2.2 11.3l2.5 2.5 4.6-4.6A3.4 3.4 0 0 0 13.8 6L11.6 8 8.9 7.4 8.2 4.6 10 2.2Z",
  thought: "M5 12.5c-2 0-3.2-1.4-3.2-3S3 6.6 4.6 6.6C4.7 4.4 6.3 3 8.3 3c2 0 3.3 1.3 3.6 3 1.5.2 2.4 1.5 2.4 3 0 1.9-1.3 3.5-3.3 3.5Z",
  leave: "M6.5 2.5h-4v11h4M6 8h8M11 5l3 3-3 3",
  warning: "M8 2 1.5 13.5h13L8 2Zm0 4.5v3.2M8 11.6h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

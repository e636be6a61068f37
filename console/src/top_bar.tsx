import type { Route } from "./router";
import { Icon } from "./ui/icons";
import type { Theme } from "./ui/theme";

interface TopBarProps {
  /** Nothing until the program knows it. */
  view: Route["view"] | undefined;
  theme: Theme;
  onTheme?: () => void;
  onKeys?: () => void;
  /** Only where somebody logged in. */
  onLogOut?: (() => void) | undefined;
}

const SESSION_VIEWS: unknown[] = ["sessions", "session", "tree", "loops", "compare", "trash"];

/** The head of every view. It is part of index.html too, so that it is there before the program. */
export function TopBar({ view, theme, onTheme, onKeys, onLogOut }: TopBarProps) {
  const themeIcon = { system: "system", light: "sun", dark: "moon" } as const;
  return (
    <header class="top">
      <a class="brand" href="#/sessions">
        <BrandMark />
        <span class="brand-name">Bough</span>
      </a>
      <nav class="nav" aria-label="Views">
        <NavLink href="#/sessions" isCurrent={SESSION_VIEWS.includes(view)}>
          Sessions
        </NavLink>
        <NavLink href="#/usage" isCurrent={view === "usage"}>
          Usage
        </NavLink>
        <NavLink href="#/health" isCurrent={view === "health"}>
          Health
        </NavLink>
      </nav>
      <div class="top-tools">
        <a class="nav-link" href="/docs">
          API
        </a>
        <button type="button" class="icon-button" aria-label={`Colours: ${theme}. Change`} onClick={onTheme}>
          <Icon name={themeIcon[theme]} />
        </button>
        <button type="button" class="icon-button keys-button" aria-label="Keyboard shortcuts" onClick={onKeys}>
          <Icon name="keys" />
        </button>
        {onLogOut !== undefined && (
          <button type="button" class="icon-button" aria-label="Log out" title="Log out" onClick={onLogOut}>
            <Icon name="leave" />
          </button>
        )}
      </div>
    </header>
  );
}

function NavLink({ href, isCurrent, children }: { href: string; isCurrent: boolean; children: string }) {
  return (
    <a class="nav-link" href={href} aria-current={isCurrent ? "page" : undefined}>
      {children}
    </a>
  );
}

export function BrandMark() {
  return (
    <svg class="brand-mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" />
      <path d="M11 26V6M11 20c0-5 10-3 10-9" />
    </svg>
  );
}

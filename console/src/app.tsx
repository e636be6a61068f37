import { useState } from "preact/hooks";
import { access } from "./api/client";
import { ConnectionBanner } from "./banner";
import { Login } from "./login";
import { HealthView } from "./health/view";
import { LoopsView } from "./loops/view";
import { route, type Route } from "./router";
import { SessionsView } from "./sessions/view";
import { ShortcutList } from "./shortcut_list";
import { TranscriptView } from "./transcript/view";
import { CompareView } from "./tree/compare";
import { TreeView } from "./tree/view";
import { UsageView } from "./usage/view";
import { Icon } from "./ui/icons";
import { useShortcuts } from "./ui/keys";
import { EmptyState } from "./ui/states";
import { useStore } from "./ui/store";
import { nextTheme, theme } from "./ui/theme";
import { Toasts } from "./ui/toasts";

export function App() {
  const { isTokenNeeded } = useStore(access);
  return isTokenNeeded ? <Login /> : <Shell />;
}

function Shell() {
  const current = useStore(route);
  const [isListShown, setListShown] = useState(false);
  useShortcuts([
    { key: "?", about: "This list", act: () => setListShown(true) },
    { key: "t", about: "Light, dark or as the system", act: nextTheme },
  ]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/sessions">
          <Brand />
          <span class="brand-name">Bough</span>
        </a>
        <nav class="nav" aria-label="Views">
          <NavLink href="#/sessions" isCurrent={["sessions", "session", "tree", "loops", "compare"].includes(current.view)}>
            Sessions
          </NavLink>
          <NavLink href="#/usage" isCurrent={current.view === "usage"}>
            Usage
          </NavLink>
          <NavLink href="#/health" isCurrent={current.view === "health"}>
            Health
          </NavLink>
        </nav>
        <div class="top-tools">
          <a class="nav-link" href="/docs">
            API
          </a>
          <ThemeButton />
          <button type="button" class="icon-button keys-button" aria-label="Keyboard shortcuts" onClick={() => setListShown(true)}>
            <Icon name="keys" />
          </button>
        </div>
      </header>
      <ConnectionBanner />
      <main id="main" class="main" tabIndex={-1}>
        <View current={current} />
      </main>
      <Toasts />
      {isListShown && <ShortcutList onClose={() => setListShown(false)} />}
    </div>
  );
}

function View({ current }: { current: Route }) {
  switch (current.view) {
    case "sessions":
      return <SessionsView filters={current.filters} />;
    case "session":
      return <TranscriptView key={current.session} session={current.session} entry={current.entry} />;
    case "tree":
      return <TreeView key={current.session} session={current.session} />;
    case "loops":
      return <LoopsView key={current.session} session={current.session} />;
    case "compare":
      return <CompareView key={`${current.left} ${current.right}`} session={current.session} left={current.left} right={current.right} />;
    case "usage":
      return <UsageView query={current.query} />;
    case "health":
      return <HealthView />;
    case "unknown":
      return (
        <EmptyState title="There is nothing here" isView>
          <a class="button" href="#/sessions">
            Show all sessions
          </a>
        </EmptyState>
      );
  }
}

function NavLink({ href, isCurrent, children }: { href: string; isCurrent: boolean; children: string }) {
  return (
    <a class="nav-link" href={href} aria-current={isCurrent ? "page" : undefined}>
      {children}
    </a>
  );
}

function ThemeButton() {
  const name = useStore(theme);
  const icon = { system: "system", light: "sun", dark: "moon" } as const;
  return (
    <button type="button" class="icon-button" aria-label={`Colours: ${name}. Change`} onClick={nextTheme}>
      <Icon name={icon[name]} />
    </button>
  );
}

function Brand() {
  return (
    <svg class="brand-mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" />
      <path d="M11 26V6M11 20c0-5 10-3 10-9" />
    </svg>
  );
}

function skip(event: Event): void {
  // The address after `#` is the view's.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

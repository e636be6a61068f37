import { useState } from "preact/hooks";
import { access, describe, hasLogin, logOut } from "./api/client";
import { ConnectionBanner } from "./banner";
import { Login } from "./login";
import { serverViews, sessionViews } from "./parts";
import { route, type Route } from "./router";
import { SessionsView } from "./sessions/view";
import { ShortcutList } from "./shortcut_list";
import { TopBar } from "./top_bar";
import { Boundary } from "./ui/boundary";
import { useShortcuts } from "./ui/keys";
import { LazyView } from "./ui/lazy";
import { EmptyState, Nowhere } from "./ui/states";
import { useStore } from "./ui/use_store";
import { nextTheme, theme } from "./ui/theme";
import { notifyError, Toasts } from "./ui/toasts";

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
      <TopBar view={current.view} theme={useStore(theme)} onTheme={nextTheme} onKeys={() => setListShown(true)} onLogOut={hasLogin() ? () => void leave() : undefined} />
      <ConnectionBanner />
      <main id="main" class="main" tabIndex={-1}>
        <Boundary key={`${current.view} ${"session" in current ? current.session : ""}`} fallback={<NotDrawn />}>
          <View current={current} />
        </Boundary>
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
      return <LazyView from={sessionViews}>{({ TranscriptView }) => <TranscriptView key={current.session} session={current.session} entry={current.entry} />}</LazyView>;
    case "tree":
      return <LazyView from={sessionViews}>{({ TreeView }) => <TreeView key={current.session} session={current.session} />}</LazyView>;
    case "loops":
      return <LazyView from={sessionViews}>{({ LoopsView }) => <LoopsView key={current.session} session={current.session} />}</LazyView>;
    case "compare":
      return (
        <LazyView from={sessionViews}>
          {({ CompareView }) => <CompareView key={`${current.left} ${current.right}`} session={current.session} left={current.left} right={current.right} />}
        </LazyView>
      );
    case "usage":
      return <LazyView from={serverViews}>{({ UsageView }) => <UsageView query={current.query} />}</LazyView>;
    case "health":
      return <LazyView from={serverViews}>{({ HealthView }) => <HealthView />}</LazyView>;
    case "trash":
      return <LazyView from={serverViews}>{({ TrashView }) => <TrashView />}</LazyView>;
    case "unknown":
      return <Nowhere title="There is nothing here" about="No view has this address. The link may not be complete." isView />;
  }
}

function NotDrawn() {
  return (
    <EmptyState title="This view failed" isView>
      <p>The page did not expect what the server answered. The server may be newer than this page.</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        Load the page again
      </button>
    </EmptyState>
  );
}

/** The page is loaded anew, so that nothing that was read stays in it. */
async function leave(): Promise<void> {
  try {
    await logOut();
    location.reload();
  } catch (error) {
    notifyError(describe(error));
  }
}

function skip(event: Event): void {
  // The address after `#` is the view's.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

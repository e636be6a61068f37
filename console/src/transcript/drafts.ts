// What was typed and not sent yet, by session: it outlives the view, and the browser asks before the page goes with it.

interface Drafts {
  reply?: string;
  edit?: { entry: string; text: string };
}

const bySession = new Map<string, Drafts>();

export function draftsOf(session: string): Readonly<Drafts> {
  return bySession.get(session) ?? {};
}

export function keepReply(session: string, text: string): void {
  const { reply: _, ...others } = draftsOf(session);
  keep(session, text.trim() === "" ? others : { ...others, reply: text });
}

/** Keeps an edited message, or forgets it when there is none. */
export function keepEdit(session: string, edit: Drafts["edit"]): void {
  const { edit: _, ...others } = draftsOf(session);
  keep(session, edit === undefined ? others : { ...others, edit });
}

function keep(session: string, drafts: Drafts): void {
  if (Object.keys(drafts).length === 0) {
    bySession.delete(session);
  } else {
    bySession.set(session, drafts);
  }
  // Only while there is something to lose: pages that listen are not kept by the browser for the way back.
  const change = bySession.size > 0 ? window.addEventListener : window.removeEventListener;
  change.call(window, "beforeunload", askBeforeLeaving);
}

function askBeforeLeaving(event: Event): void {
  event.preventDefault();
}

/** A reply that is being made, told from its beginning to its end to somebody who comes in the middle. */

import type { UIMessage, UIMessageChunk } from "ai";

import { newId } from "../requests.js";
import type { Session } from "../session.js";
import type { Event } from "../types.js";
import type { Watch } from "../watch.js";
import { chunksOf, isText, type Part } from "./parts.js";
import { readPath } from "./path.js";

/** A reply of which nothing is heard for so many milliseconds has ended: the program that made it has. */
const SILENCE_MAX = 300_000;

/** The chunks of the reply that is being made. `watch` must be open already, so that nothing falls between reading and watching. */
export async function* replay(session: Session, watch: Watch): AsyncGenerator<UIMessageChunk, void> {
  const teller = new Teller();
  let place = await lastReply(session);
  let heard: Event | undefined;
  try {
    for (;;) {
      if (place !== undefined) yield* teller.tell(place.message);
      const event = await nextEvent(watch);
      if (event === undefined || endsReply(event)) break;
      place = afterEvent(place, event, heard) ?? (await lastReply(session));
      heard = event;
    }
    const last = await lastReply(session);
    if (last !== undefined) yield* teller.tell(last.message);
    yield* teller.end();
  } finally {
    watch.close();
  }
}

/** How far the last reply of a chat is. */
interface Place {
  message: UIMessage;
  entryId: string;
  revision: number;
  /** Whether its last part is a text of its last entry, which a delta continues. */
  endsWithText: boolean;
}

async function lastReply(session: Session): Promise<Place | undefined> {
  const last = (await readPath(session)).at(-1);
  const entry = last?.entries.at(-1);
  if (last === undefined || entry === undefined || last.message.role !== "assistant") return undefined;
  const own = (entry.message?.["parts"] ?? []) as Part[];
  return { message: last.message, entryId: entry.entry_id, revision: entry.revision ?? 0, endsWithText: isText(own.at(-1)) };
}

/**
 * The reply after an event; `undefined` when it has to be read again. A delta may join several revisions: it continues what is
 * known only where what is known ends at the event `heard` before it.
 */
function afterEvent(place: Place | undefined, event: Event, heard: Event | undefined): Place | undefined {
  const revision = revisionIn(event, place);
  if (place === undefined || revision === undefined) return undefined;
  if (revision <= place.revision) return place;
  const last = place.message.parts.at(-1);
  const kind = event.data["kind"] === "thinking" ? "reasoning" : event.data["kind"];
  const isNext = event.type === "message.delta" && place.endsWithText && heard !== undefined && revisionIn(heard, place) === place.revision;
  if (!isNext || !isText(last) || last.type !== kind) return undefined;
  last.text += String(event.data["text"]);
  return { ...place, revision };
}

/** The revision that an event says of the last entry of a reply. */
function revisionIn({ data }: Event, place: Place | undefined): number | undefined {
  return data["entry_id"] === place?.entryId && typeof data["revision"] === "number" ? data["revision"] : undefined;
}

function endsReply({ type, data }: Event): boolean {
  return (type === "session::status-changed" && data["status"] !== "working") || (type === "message.finished" && data["aborted"] === true);
}

/** The next event, or `undefined` when there is none for too long. */
async function nextEvent(watch: Watch): Promise<Event | undefined> {
  const timer = setTimeout(() => watch.close(), SILENCE_MAX);
  const { value } = await watch.next().finally(() => clearTimeout(timer));
  return value ?? undefined;
}

/** Tells what is new of a message, each time that it is shown one. */
class Teller {
  #told = 0;
  #text: { id: string; type: "text" | "reasoning"; length: number } | undefined;
  #isStarted = false;
  #isInStep = false;

  *tell(message: UIMessage): Generator<UIMessageChunk, void> {
    if (!this.#isStarted) yield { type: "start", messageId: message.id };
    this.#isStarted = true;
    for (const part of message.parts.slice(this.#told)) {
      if (isText(part)) yield* this.#tellText(part, message.parts);
      else yield* this.#tellWhole(part);
    }
  }

  *end(): Generator<UIMessageChunk, void> {
    yield* this.#endText();
    if (this.#isInStep) yield { type: "finish-step" };
    yield { type: "finish" };
  }

  *#tellText(part: Extract<Part, { text: string }>, parts: readonly Part[]): Generator<UIMessageChunk, void> {
    const type = part.type === "text" ? "text" : "reasoning";
    if (this.#text === undefined) {
      this.#text = { id: newId("t"), type, length: 0 };
      yield { type: `${type}-start`, id: this.#text.id };
    }
    const fresh = part.text.slice(this.#text.length);
    this.#text.length = part.text.length;
    if (fresh !== "") yield { type: `${type}-delta`, id: this.#text.id, delta: fresh };
    // The last part may still grow.
    if (part !== parts.at(-1)) {
      yield* this.#endText();
      this.#told += 1;
    }
  }

  *#tellWhole(part: Part): Generator<UIMessageChunk, void> {
    yield* this.#endText();
    if (part.type === "step-start") {
      if (this.#isInStep) yield { type: "finish-step" };
      this.#isInStep = true;
    }
    yield* chunksOf(part);
    this.#told += 1;
  }

  *#endText(): Generator<UIMessageChunk, void> {
    if (this.#text !== undefined) yield { type: `${this.#text.type}-end`, id: this.#text.id };
    this.#text = undefined;
  }
}

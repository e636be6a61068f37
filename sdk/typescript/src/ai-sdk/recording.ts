/** Storing a reply while it is made. */

import { readUIMessageStream, type FinishReason, type UIMessage, type UIMessageChunk } from "ai";

import { newId } from "../requests.js";
import type { Session } from "../session.js";
import type { Json, Message, StopReason } from "../types.js";
import { isSettled, isText, isTool, type Part } from "./parts.js";

/** Why the AI SDK's models stopped, in the words of Bough. */
const STOP_REASONS: { [reason in FinishReason]?: StopReason } = { length: "length", "tool-calls": "function_call", error: "error" };

/** The custom entry behind a reply, with what its messages have no place for. */
export const DETAILS = "ai-sdk.details";

/** What the stream said of a reply beside its parts, and of its texts beside what they say, by their places. */
export interface Details {
  id: string;
  metadata?: unknown;
  parts?: { [index: string]: Json };
}

/**
 * Stores a reply as entries: a text that streams is one, so that readers see it grow, and other parts are one as soon as they are
 * complete. All have the id of the reply. Returns the whole reply.
 */
export async function record(session: Session, chunks: ReadableStream<UIMessageChunk>, continued?: UIMessage): Promise<UIMessage | undefined> {
  const recording = new Recording(session, new States(chunks, continued));
  return recording.run(continued?.parts.length ?? 0);
}

/** What a stream has told so far. */
class States {
  message: UIMessage | undefined;
  isOver = false;
  stopReason: StopReason = "end";
  error: string | undefined;
  readonly #messages: AsyncIterator<UIMessage>;

  constructor(chunks: ReadableStream<UIMessageChunk>, continued: UIMessage | undefined) {
    this.message = continued;
    const watched = chunks.pipeThrough(new TransformStream({ transform: (chunk, controller) => this.#look(chunk, controller) }));
    const message = structuredClone(continued);
    // The chunk that tells an error is looked at; the parts before it are stored.
    const onError = (): void => undefined;
    this.#messages = readUIMessageStream({ stream: watched, onError, ...(message && { message }) })[Symbol.asyncIterator]();
  }

  get parts(): readonly Part[] {
    return this.message?.parts ?? [];
  }

  /** Waits for the next state. */
  async next(): Promise<void> {
    const { done, value } = await this.#messages.next();
    if (done === true) this.isOver = true;
    else this.message = value as UIMessage;
  }

  /** The part at a place, once there is one; `undefined` when the reply ends before it. */
  async part(index: number): Promise<Part | undefined> {
    while (this.parts[index] === undefined && !this.isOver) await this.next();
    return this.parts[index];
  }

  #look(chunk: UIMessageChunk, controller: TransformStreamDefaultController<UIMessageChunk>): void {
    if (chunk.type === "finish") this.stopReason = STOP_REASONS[chunk.finishReason ?? "stop"] ?? "end";
    if (chunk.type === "abort") this.stopReason = "aborted";
    if (chunk.type === "error") [this.stopReason, this.error] = ["error", chunk.errorText];
    controller.enqueue(chunk);
  }
}

class Recording {
  readonly #session: Session;
  readonly #states: States;
  /** The id of a reply that its stream gives none. */
  readonly #ownId = newId("m");
  /** Parts that are complete and not stored yet. */
  #waiting: Part[] = [];

  constructor(session: Session, states: States) {
    this.#session = session;
    this.#states = states;
  }

  async run(from: number): Promise<UIMessage | undefined> {
    const states = this.#states;
    for (let index = from; (await states.part(index)) !== undefined; index += 1) {
      if (isText(states.parts[index])) await this.#stream(index);
      else await this.#take(index);
      // A step that was tried again comes again: what was stored of it stays.
      index = Math.min(index, states.parts.length - 1);
    }
    await this.#appendWaiting();
    const details = detailsOf(states.message);
    if (Object.keys(details).length > 0) await this.#session.appendCustom(DETAILS, { id: this.#id, ...details });
    return states.message;
  }

  /** Writes a text as it grows. The entry ends when the next part begins: only then is known why the text stopped. */
  async #stream(index: number): Promise<void> {
    const states = this.#states;
    const steps = this.#waiting.every((part) => part.type === "step-start") ? this.#waiting.splice(0) : [];
    await this.#appendWaiting();
    const message = this.#message(steps);
    await this.#session.stream(
      async (reply) => {
        let sent = 0;
        for (;;) {
          const part = states.parts[index];
          if (isText(part)) {
            await (part.type === "text" ? reply.text(part.text.slice(sent)) : reply.thinking(part.text.slice(sent)));
            sent = part.text.length;
          }
          if (states.isOver || states.parts.length !== index + 1) break;
          await states.next();
        }
        const isLast = states.parts[index + 1] === undefined;
        const stopReason = isLast ? states.stopReason : isTool(states.parts[index + 1]) ? "function_call" : "end";
        reply.finish({ stopReason, ...(isLast && states.error !== undefined && { error: states.error }) });
      },
      { format: "ai-sdk", message },
    );
  }

  /** Waits until a part is complete, or the reply is. */
  async #take(index: number): Promise<void> {
    const states = this.#states;
    let part = states.parts[index];
    while (part !== undefined && !isSettled(part) && !states.isOver) {
      await states.next();
      part = states.parts[index];
    }
    if (part === undefined) return;
    this.#waiting.push(part);
    // A tool may be followed by nothing for long; readers should see it.
    if (isTool(part)) await this.#appendWaiting();
  }

  async #appendWaiting(): Promise<void> {
    const parts = this.#waiting.splice(0);
    if (parts.some((part) => part.type !== "step-start")) await this.#session.append(this.#message(parts), { format: "ai-sdk" });
  }

  #message(parts: Part[]): Message {
    return { id: this.#id, role: "assistant", parts };
  }

  get #id(): string {
    return this.#states.message?.id || this.#ownId;
  }
}

function detailsOf(message: UIMessage | undefined): Omit<Details, "id"> {
  const texts = (message?.parts ?? []).map((part, index): [string, Json] => {
    if (!isText(part)) return [String(index), {}];
    const { type: _type, text: _text, state: _state, ...rest } = part;
    return [String(index), JSON.parse(JSON.stringify(rest)) as Json];
  });
  const parts = Object.fromEntries(texts.filter(([, rest]) => Object.keys(rest).length > 0));
  return {
    ...(message?.metadata !== undefined && { metadata: message.metadata }),
    ...(Object.keys(parts).length > 0 && { parts }),
  };
}

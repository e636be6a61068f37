/**
 * Chats of the Vercel AI SDK: messages that stay, and replies that go on after a reload.
 *
 * ```ts
 * import { createUIMessageStreamResponse, generateId, streamText, toUIMessageStream, convertToModelMessages } from "ai";
 * import { BoughChatStore } from "boughdb/ai-sdk";
 *
 * const chats = new BoughChatStore("http://127.0.0.1:7717");
 *
 * // POST /api/chat
 * await chats.save(id, messages);
 * const result = streamText({ model, messages: await convertToModelMessages(messages) });
 * const reply = toUIMessageStream({ stream: result.stream, originalMessages: messages, generateMessageId: generateId });
 * return createUIMessageStreamResponse({ stream: await chats.record(id, reply) });
 *
 * // GET /api/chat/[id]/stream
 * const stream = await chats.resume(id);
 * return stream === null ? new Response(null, { status: 204 }) : createUIMessageStreamResponse({ stream });
 * ```
 *
 * A chat is a session of Bough: the console and every other client read it, and see replies grow.
 */

import type { UIMessage, UIMessageChunk } from "ai";

import { clientOf, orWhenMissing, type UrlOrClient } from "./adapters.js";
import { sameParts, saysTheSame } from "./ai-sdk/parts.js";
import { readPath } from "./ai-sdk/path.js";
import { record } from "./ai-sdk/recording.js";
import { replay } from "./ai-sdk/replay.js";
import type { Bough } from "./client.js";
import { LeafConflict } from "./errors.js";
import type { Session } from "./session.js";
import type { Message, NewEntry } from "./types.js";

export type { UrlOrClient } from "./adapters.js";

export interface ChatStoreOptions {
  /** A chat is the session `prefix` + chat id. */
  prefix?: string;
}

/** Keeps the chats of an application in Bough. */
export class BoughChatStore {
  readonly #bough: Bough;
  readonly #prefix: string;

  constructor(urlOrClient?: UrlOrClient, options: ChatStoreOptions = {}) {
    this.#bough = clientOf(urlOrClient);
    this.#prefix = options.prefix ?? "";
  }

  /** Returns the messages of a chat; none when there is no such chat. */
  async load(chatId: string): Promise<UIMessage[]> {
    const path = await orWhenMissing(readPath(this.#session(chatId)), []);
    return path.map((stored) => stored.message);
  }

  /**
   * Makes a chat hold exactly these messages. What is there already is not stored again. Where they differ from what is there, as
   * after an edit or to regenerate a reply, the chat branches; the other branch stays in the tree of the session.
   */
  async save(chatId: string, messages: readonly UIMessage[]): Promise<void> {
    for (;;) {
      try {
        return await this.#save(chatId, messages);
      } catch (error) {
        // Somebody else changed the chat meanwhile: what differs is looked for again.
        if (!(error instanceof LeafConflict)) throw error;
      }
    }
  }

  async #save(chatId: string, messages: readonly UIMessage[]): Promise<void> {
    const session = this.#session(chatId);
    const meta = await orWhenMissing(session.meta(), undefined);
    const path = meta === undefined ? [] : await readPath(session);
    const differs = path.findIndex(({ message }, index) => messages[index] === undefined || !saysTheSame(message, messages[index]));
    const kept = differs < 0 ? path.length : differs;
    const place = path[kept - 1]?.entries.at(-1)?.entry_id ?? null;
    const leaf = meta?.active_leaf ?? "";
    const entries = messages.slice(kept).map((message): NewEntry => ({ message: message as unknown as Message, format: "ai-sdk" }));
    if (place !== null && entries[0] !== undefined) entries[0].parent_id = place;
    if (kept < path.length && (place === null || entries.length === 0)) {
      await session.switchTo(place, { expectedLeaf: leaf });
      if (entries.length > 0) await session.appendMany(entries);
    } else if (entries.length > 0) {
      await session.appendMany(entries, { create: true, expectedLeaf: leaf });
    }
  }

  /**
   * Stores a reply while it is made. Returns the same stream, for the response; it ends when the reply is durable. The reply is
   * made and stored to its end also when nobody reads the response any more. `continued` is the message of the model that the
   * reply continues, such as one whose tool the browser answered.
   */
  async record(
    chatId: string,
    reply: ReadableStream<UIMessageChunk>,
    options: { continued?: UIMessage } = {},
  ): Promise<ReadableStream<UIMessageChunk>> {
    const session = this.#session(chatId);
    await this.#bough.ensure(session.id);
    await session.setStatus("working");
    const [response, kept] = reply.tee();
    const stored = this.#store(chatId, kept, options.continued);
    // Whoever reads the response hears of a failure; when nobody does, the session says it.
    stored.catch(() => undefined);
    return response.pipeThrough(new TransformStream({ flush: () => stored }));
  }

  async #store(chatId: string, chunks: ReadableStream<UIMessageChunk>, continued: UIMessage | undefined): Promise<void> {
    const session = this.#session(chatId);
    try {
      const message = await record(session, chunks, continued);
      if (message !== undefined && continued !== undefined) await this.#rewrite(chatId, message, continued);
      await session.setStatus("idle");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      await session.setStatus("error", { reason }).catch(() => undefined);
      throw error;
    }
  }

  /** Stores a continued message again where the reply changed what was there, such as a tool that was approved and ran. */
  async #rewrite(chatId: string, message: UIMessage, continued: UIMessage): Promise<void> {
    if (sameParts(message.parts.slice(0, continued.parts.length), continued.parts)) return;
    const path = await this.load(chatId);
    await this.save(chatId, [...path.slice(0, path.findLastIndex((one) => one.id === message.id)), message]);
  }

  /** Returns the reply that is being made, from its beginning and to its end, or `null` when none is. */
  async resume(chatId: string): Promise<ReadableStream<UIMessageChunk> | null> {
    const session = this.#session(chatId);
    const meta = await orWhenMissing(session.meta(), undefined);
    if (meta?.status !== "working") return null;
    const watch = await session.watch().ready();
    // It may have ended before the feed was open.
    if ((await session.meta()).status !== "working") {
      watch.close();
      return null;
    }
    const chunks = replay(session, watch);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        watch.close();
      },
    });
  }

  #session(chatId: string): Session {
    return this.#bough.session(this.#prefix + chatId);
  }
}

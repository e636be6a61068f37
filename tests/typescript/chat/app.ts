/** The server of a small chat page: what an application writes to keep its chats in Bough. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";

import { convertToModelMessages, createUIMessageStreamResponse, generateId, type LanguageModel, streamText, toUIMessageStream, type UIMessage } from "ai";
import type { BoughChatStore } from "boughdb/ai-sdk";

const PAGE = `<!doctype html><title>Chat</title><ol></ol><form><input aria-label="Question"><button>Send</button></form>
<script type="module" src="/page.js"></script>`;

export function chatApp(chats: BoughChatStore, model: LanguageModel, script: string): Server {
  return createServer((request, response) => {
    void answer(chats, model, script, request).then((answered) => send(answered, response));
  });
}

async function answer(chats: BoughChatStore, model: LanguageModel, script: string, request: IncomingMessage): Promise<Response> {
  const [, api, , id = "", stream] = (request.url ?? "").split("/");
  if (request.url === "/page.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
  if (api !== "api") return new Response(PAGE, { headers: { "content-type": "text/html" } });
  if (request.method === "POST") return reply(chats, model, request);
  if (stream === undefined) return Response.json(await chats.load(id));
  const resumed = await chats.resume(id);
  return resumed === null ? new Response(null, { status: 204 }) : createUIMessageStreamResponse({ stream: resumed });
}

async function reply(chats: BoughChatStore, model: LanguageModel, request: IncomingMessage): Promise<Response> {
  const { id, messages } = (await new Response(Readable.toWeb(request) as ReadableStream).json()) as { id: string; messages: UIMessage[] };
  await chats.save(id, messages);
  const result = streamText({ model, messages: await convertToModelMessages(messages) });
  const stream = toUIMessageStream({ stream: result.stream, originalMessages: messages, generateMessageId: generateId });
  return createUIMessageStreamResponse({ stream: await chats.record(id, stream) });
}

function send(answered: Response, response: ServerResponse): void {
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body === null) {
    response.end();
    return;
  }
  const body = Readable.fromWeb(answered.body as NodeStream);
  // A reader that leaves ends its response, and nothing else.
  response.once("close", () => body.destroy());
  body.once("error", () => response.destroy());
  body.pipe(response);
}

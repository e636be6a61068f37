// A chat server whose replies are seen while they are written.
//
//   node chat-server.ts [PORT]
//
//   curl -N localhost:8000/chats/one/events &
//   curl localhost:8000/chats/one -d 'Will it rain tomorrow?'
//
// A browser would read `/chats/one/events` with `EventSource`, which goes on by itself after a broken connection.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

import { Bough, type Session } from "boughdb";

const bough = new Bough();

/** Stands for a model that streams its answer. */
async function* model(question: string): AsyncGenerator<string> {
  yield* ["You ", "asked: ", question];
}

/** Stores the question, and the answer while it comes. */
async function ask(chat: Session, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const question = await text(request);
  await chat.append(question);
  await chat.stream(
    async (reply) => {
      for await (const piece of model(question)) await reply.text(piece);
    },
    { model: "example" },
  );
  response.writeHead(204).end();
}

/** Passes the events of a chat on, from the beginning or after the last one that the browser saw. */
async function follow(chat: Session, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const seen = request.headers["last-event-id"];
  const events = chat.watch({ after: typeof seen === "string" ? seen : "start" });
  response.on("close", () => events.close());
  response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const event of events) {
    response.write(`id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event.data)}\n\n`);
  }
}

const server = createServer(async (request, response) => {
  try {
    const chat = await bough.ensure(String(request.url).split("/")[2] ?? "one");
    await (request.method === "POST" ? ask : follow)(chat, request, response);
  } catch (error) {
    if (!response.headersSent) response.writeHead(502);
    response.end(String(error));
  }
});
server.listen(Number(process.argv[2] ?? 8000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

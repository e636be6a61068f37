"""A chat server whose replies are seen while they are written.

    python chat_server.py [PORT]

    curl -N localhost:8000/chats/one/events &
    curl localhost:8000/chats/one -d 'Will it rain tomorrow?'

A browser would read `/chats/one/events` with `EventSource`, which goes on by itself after a broken connection.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from boughdb import Bough

bough = Bough()


def model(question: str) -> Iterator[str]:
    """Stands for a model that streams its answer."""
    yield from ["You ", "asked: ", question]


class Chats(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Stores the question, and the answer while it comes."""
        chat = bough.ensure(self.path.split("/")[2])
        question = self.rfile.read(int(self.headers["content-length"])).decode()
        chat.append(question)
        with chat.stream(model="example") as reply:
            for piece in model(question):
                reply.text(piece)
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        """Passes the events of a chat on, from the beginning or after the last one that the browser saw."""
        chat = bough.ensure(self.path.split("/")[2])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with chat.watch(after=self.headers.get("last-event-id", "start")) as events:
            for event in events:
                self.wfile.write(f"id: {event.cursor}\nevent: {event.type}\ndata: {json.dumps(event.data)}\n\n".encode())
                self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Chats)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()

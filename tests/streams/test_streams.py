"""Outside clients read replies that stream, over kills of the server: nothing is lost, repeated or torn."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

import httpx
import httpx_sse
import pytest
import requests
import sseclient

REPLIES = 6
DELTAS = 40
KILLS = 5
AT_MOST_SECONDS = 90
LAST_WORDS = ["stop_reason", "error_message", "usage", "model", "provider"]


class Server:
    """A server that is killed and started again on one port and directory."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder, self.url = folder, f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [os.environ["BOUGH"], "serve", "--data-dir", self.folder, "--listen", f"127.0.0.1:{self.port}", "--bus", "off"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert any(line.startswith("HTTP") or " HTTP " in f" {line} " for line in self.process.stdout), "it did not start"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, method, path, body=None):
        """The answer; asks again while there is no server."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"}, method=method)
        until = time.monotonic() + AT_MOST_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as refused:
                return refused.code, json.load(refused)
            except (OSError, ValueError):
                assert time.monotonic() < until, "the server does not come back"
                time.sleep(0.05)


class Viewer:
    """Keeps messages by the events about them."""

    def __init__(self):
        self.messages, self.last_id, self.is_done = {}, None, False
        self.started, self.finished = [], []

    def apply(self, name, text, event_id):
        assert text, f"an event without data: {name!r} {event_id!r}"
        data = json.loads(text)
        assert name != "gap", data
        if event_id:
            self.last_id = event_id
        if name == "message.started":
            self.started.append(data["entry_id"])
        if name in ("message.started", "message.snapshot"):
            self.messages[data["entry_id"]] = {"revision": data["revision"], "message": data["message"]}
        elif name == "message.delta":
            self.grow(data)
        elif name == "message.finished":
            kept = self.messages[data["entry_id"]]
            kept["message"].update({word: data[word] for word in LAST_WORDS if word in data})
            kept["revision"] = data["revision"]
            self.finished.append(data["entry_id"])
        elif name == "session::status-changed":
            self.is_done = data["payload"]["status"] == "done"

    def grow(self, data):
        kept = self.messages[data["entry_id"]]
        assert data["revision"] > kept["revision"], f"repeated: {data}"
        content = kept["message"]["content"]
        if data["block"] == len(content):
            content.append({"type": data["kind"], "text": ""})
        content[data["block"]]["text"] += data["text"]
        kept["revision"] = data["revision"]


def read_with(connect, url):
    """Reads to the end; connects again where the last connection stopped."""
    viewer, until = Viewer(), time.monotonic() + AT_MOST_SECONDS
    while not viewer.is_done:
        assert time.monotonic() < until, "the end never came"
        headers = {"last-event-id": viewer.last_id} if viewer.last_id else {}
        try:
            for name, text, event_id in connect(url, headers):
                viewer.apply(name, text, event_id)
                if viewer.is_done:
                    break
        except (httpx.TransportError, requests.RequestException):
            # Long enough that replies begin and end meanwhile.
            time.sleep(1)
    return {"messages": viewer.messages, "started": viewer.started, "finished": viewer.finished}


def with_httpx_sse(url, headers):
    with httpx.Client(timeout=20) as client, httpx_sse.connect_sse(client, "GET", url, headers=headers) as source:
        for event in source.iter_sse():
            yield event.event, event.data, event.id


def with_sseclient(url, headers):
    with requests.get(url, headers=headers, stream=True, timeout=20) as answer:
        for event in sseclient.SSEClient(answer).events():
            yield event.event, event.data, event.id


def with_eventsource(url):
    command = ["node", os.environ["NODE_READER"], url]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=AT_MOST_SECONDS)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


READERS = {
    "httpx-sse": lambda url: read_with(with_httpx_sse, url),
    "sseclient-py": lambda url: read_with(with_sseclient, url),
    "eventsource": with_eventsource,
}


def write_replies(server, at_half):
    """Streams replies, and says when each is half done. A delta that was sent before a kill is sent again for the revision that it was meant for."""
    for reply in range(REPLIES):
        entry = f"/v1/sessions/s/entries/r{reply}"
        message = {"role": "assistant", "content": [{"type": "text", "text": ""}], "stop_reason": "end",
                   "model": "m", "provider": "p", "timestamp": 1}
        status, answer = server.ask("POST", "/v1/sessions/s/entries", {"entry_id": f"r{reply}", "message": message, "stream": True})
        assert status == 200, answer
        for number in range(DELTAS):
            if number == DELTAS // 2:
                at_half[reply].set()
            delta = {"block": 0, "text": f"{number}\n\u00e9 ", "expected_revision": number}
            status, answer = server.ask("POST", f"{entry}/delta", delta)
            assert status == 200 or answer["data"]["revision"] == number + 1, answer
        status, answer = server.ask("POST", f"{entry}/finish", {"stop_reason": "length", "usage": {"output": reply}})
        assert status == 200 or answer["code"] == "session/not_streaming", answer
    server.ask("PUT", "/v1/sessions/s/status", {"status": "done"})


@pytest.fixture(scope="module")
def outcome():
    """What each reader has in the end, and what is stored."""
    with tempfile.TemporaryDirectory(prefix="bough-streams-") as folder:
        server = Server(folder)
        try:
            yield stream_over_kills(server)
        finally:
            server.kill()


def stream_over_kills(server):
    server.ask("PUT", "/v1/sessions/s", {})
    has, failed = {}, {}

    def run(name, work):
        try:
            has[name] = work()
        except BaseException as error:  # Told by the test of that reader.
            failed[name] = error

    url = f"{server.url}/v1/sessions/s/events?after=start"
    works = {name: lambda read=read: read(url) for name, read in READERS.items()}
    at_half = [threading.Event() for _ in range(REPLIES)]
    works["writer"] = lambda: write_replies(server, at_half)
    threads = {name: threading.Thread(target=run, args=(name, work)) for name, work in works.items()}
    for thread in threads.values():
        thread.start()
    kills = 0
    for half in at_half[:KILLS]:
        if not half.wait(AT_MOST_SECONDS):
            break
        server.kill()
        server.start()
        kills += 1
    for thread in threads.values():
        thread.join()
    stored = {f"r{reply}": server.ask("GET", f"/v1/sessions/s/entries/r{reply}")[1]["entry"] for reply in range(REPLIES)}
    return has, failed, stored, kills


def test_the_server_was_killed_while_replies_streamed(outcome):
    _, failed, stored, kills = outcome
    assert "writer" not in failed, failed["writer"]
    assert kills == KILLS
    expected = "".join(f"{number}\n\u00e9 " for number in range(DELTAS))
    assert all(entry["message"]["content"][0]["text"] == expected for entry in stored.values())


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_what_is_stored(outcome, name):
    has, failed, stored, _ = outcome
    assert name not in failed, failed[name]
    expected = {entry: {"revision": now["revision"], "message": now["message"]} for entry, now in stored.items()}
    assert has[name]["messages"] == expected
    # Each beginning and each end came once: a snapshot could hide that one was lost.
    assert has[name]["started"] == has[name]["finished"] == list(stored)

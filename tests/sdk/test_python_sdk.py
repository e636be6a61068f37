"""The published Python SDK against Bough's bus: the programs of the session-manager readme, and what breaks."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import warnings

import pytest

warnings.simplefilter("ignore", DeprecationWarning)
os.environ.setdefault("OTEL_ENABLED", "false")

from iii import InvocationError, TriggerAction, register_worker  # noqa: E402

NAMES = ["created", "message-added", "message-updated", "status-changed", "meta-updated", "deleted"]


class Server:
    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self):
        command = [os.environ["BOUGH"], "serve", "--data-dir", self.folder, "--listen", "127.0.0.1:0"]
        command += ["--bus", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline().startswith(b"Bough is listening")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}"


class Client:
    def __init__(self, server):
        self.worker = register_worker(server.url)

    def __call__(self, function, payload=None):
        return self.worker.trigger({"function_id": function, "payload": payload, "timeout_ms": 10_000})

    def host(self, function, handler):
        self.worker.register_function(function, handler)
        self.wait_for_function(function)

    def wait_for_function(self, function):
        until(lambda: function in str(self("engine::functions::list", {})), f"hosting {function}")

    def refuses(self, function, payload):
        with pytest.raises(InvocationError) as refused:
            self(function, payload)
        return f"{refused.value.code}: {refused.value}"


class Events:
    """What a handler was called with."""

    def __init__(self):
        self.seen = []
        self.changed = threading.Condition()

    def handler(self, data):
        with self.changed:
            self.seen.append(data)
            self.changed.notify_all()
        return {"ok": True}

    def wait_for(self, count, what):
        with self.changed:
            done = self.changed.wait_for(lambda: len(self.seen) >= count, timeout=30)
        assert done, f"{what}: {len(self.seen)} of {count} events came"
        return list(self.seen)


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory(prefix="bough-python-") as folder:
        server = Server(folder)
        yield server
        server.kill()


@pytest.fixture
def call(server):
    client = Client(server)
    yield client
    client.worker.shutdown()


@pytest.fixture
def other(server):
    client = Client(server)
    yield client
    client.worker.shutdown()


def until(check, what):
    for _ in range(300):
        if check():
            return
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen")


def user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1717800000000}


def bind_all(call, owner):
    """A handler for each of the six triggers, with a filter."""
    seen = {name: Events() for name in NAMES}
    for name in NAMES:
        function = f"py::{owner}-{name}"
        call.host(function, seen[name].handler)
        binding = {"type": f"session::{name}", "function_id": function, "config": {"metadata": {"owner": owner}}}
        call.worker.register_trigger(binding)
    return seen


def live_a_life(call, owner):
    """Everything that makes an event, with twenty revisions of one message."""
    made = call("session::create", {"title": owner, "metadata": {"owner": owner}})["session_id"]
    entry = call("session::append", {"session_id": made, "message": user("a")})["entry_id"]
    for revision in range(1, 21):
        content = [{"type": "text", "text": "a" * revision}]
        update = call("session::update-message", {"session_id": made, "entry_id": entry, "content": content})
        assert update == {"updated": True, "revision": revision}
    call("session::set-status", {"session_id": made, "status": "done"})
    call("session::set-meta", {"session_id": made, "description": "d"})
    call("session::delete", {"session_id": made})


def test_the_quickstart_runs(call):
    created = call("session::create", {"title": "Weather question", "metadata": {"owner": "u_1"}})
    session = created["session_id"]
    call("session::append", {"session_id": session, "message": user("What's the weather?")})
    page = call("session::messages", {"session_id": session})
    assert page["messages"][0]["message"]["content"][0]["text"] == "What's the weather?"


def test_no_payload_is_an_empty_one(call):
    assert isinstance(call("session::list")["sessions"], list)


def test_all_six_triggers_with_filters_and_streaming(call):
    seen = bind_all(call, "u_7")
    live_a_life(call, "u_8")
    live_a_life(call, "u_7")
    assert seen["created"].wait_for(1, "created")[0]["title"] == "u_7"
    revisions = [event["revision"] for event in seen["message-updated"].wait_for(20, "updates")]
    assert revisions == list(range(1, 21))
    for name in NAMES:
        seen[name].wait_for(1, name)
        assert len({event["session_id"] for event in seen[name].seen}) == 1, f"{name} of another owner"


@pytest.mark.parametrize(
    ("function", "payload", "words"),
    [
        ("session::messages", {"session_id": "nope"}, "session/not_found"),
        ("session::set-status", {"session_id": "nope", "status": "halted"}, "unknown variant `halted`"),
        ("session::nope", {}, "function_not_found"),
    ],
)
def test_errors_have_their_words(call, function, payload, words):
    assert words in call.refuses(function, payload)


def test_functions_of_another_connection(call, other):
    notes = Events()
    other.host("other::double", lambda data: {"n": data["n"] * 2})
    other.host("other::note", notes.handler)
    assert call("other::double", {"n": 21}) == {"n": 42}
    call.worker.trigger({"function_id": "other::note", "payload": {"x": 1}, "action": TriggerAction.Void()})
    assert notes.wait_for(1, "a call without an answer")[0]["x"] == 1
    assert call("engine::workers::list", {})["workers"]


def test_it_reconnects_after_kill_9_and_nothing_is_lost(server, call):
    session = call("session::create", {})["session_id"]
    call("session::append", {"session_id": session, "message": user("kept")})
    created = bind_all(call, "u_9")["created"]
    server.kill()
    server.start()
    until(lambda: is_connected(call), "reconnecting")
    call.wait_for_function("py::u_9-deleted")
    assert len(call("session::messages", {"session_id": session})["messages"]) == 1
    # The binding is made again after the functions; nothing says when it has arrived.
    until(lambda: call("session::create", {"metadata": {"owner": "u_9"}}) and created.seen, "an event")


def is_connected(call):
    try:
        return call("session::list", {})["sessions"] is not None
    except Exception:
        return False

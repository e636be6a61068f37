"""The published Python SDK against Bough's bus: the programs of the session-manager readme, and what breaks."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings

warnings.simplefilter("ignore", DeprecationWarning)
os.environ.setdefault("OTEL_ENABLED", "false")

from iii import InvocationError, TriggerAction, register_worker  # noqa: E402


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="bough-python-")
        self.bus = free_port()
        self.process = None
        self.start()

    def start(self):
        command = [os.environ["BOUGH_SERVE"], self.dir, "127.0.0.1:0", f"127.0.0.1:{self.bus}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline().startswith(b"Bough is listening")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.bus}"


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


def until(check, what):
    for _ in range(300):
        if check():
            return
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen")


def user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1717800000000}


def main():
    server = Server()
    worker = register_worker(server.url)
    other = register_worker(server.url)

    def call(function, payload=None, client=worker):
        return client.trigger({"function_id": function, "payload": payload, "timeout_ms": 10_000})

    # The quickstart.
    created = call("session::create", {"title": "Weather question", "metadata": {"owner": "u_1"}})
    session = created["session_id"]
    call("session::append", {"session_id": session, "message": user("What's the weather?")})
    page = call("session::messages", {"session_id": session})
    assert page["messages"][0]["message"]["content"][0]["text"] == "What's the weather?", page

    # No payload at all is an empty one.
    assert len(call("session::list")["sessions"]) == 1

    # All six triggers, with filters.
    names = ["created", "message-added", "message-updated", "status-changed", "meta-updated", "deleted"]
    seen = {name: Events() for name in names}
    for name in names:
        worker.register_function(f"py::on-{name}", seen[name].handler)
        worker.register_trigger(
            {"type": f"session::{name}", "function_id": f"py::on-{name}", "config": {"metadata": {"owner": "u_7"}}}
        )
    until(
        lambda: len([f for f in call("engine::functions::list", {})["functions"] if f["function_id"].startswith("py::")]) == 6,
        "registration",
    )
    for owner in ["u_8", "u_7"]:
        made = call("session::create", {"title": owner, "metadata": {"owner": owner}})["session_id"]
        entry = call("session::append", {"session_id": made, "message": user("a")})["entry_id"]
        for revision in range(1, 21):
            content = [{"type": "text", "text": "a" * revision}]
            update = call("session::update-message", {"session_id": made, "entry_id": entry, "content": content})
            assert update == {"updated": True, "revision": revision}, update
        call("session::set-status", {"session_id": made, "status": "done"})
        call("session::set-meta", {"session_id": made, "description": "d"})
        call("session::delete", {"session_id": made})
    assert seen["created"].wait_for(1, "created")[0]["title"] == "u_7"
    revisions = [event["revision"] for event in seen["message-updated"].wait_for(20, "updates")]
    assert revisions == list(range(1, 21)), revisions
    for name in names:
        seen[name].wait_for(1, name)
        owners = {event["session_id"] for event in seen[name].seen}
        assert len(owners) == 1, f"{name}: events of another owner came through"

    # Errors.
    for function, payload, words in [
        ("session::messages", {"session_id": "nope"}, "session/not_found"),
        ("session::set-status", {"session_id": session, "status": "halted"}, "unknown variant `halted`"),
        ("session::nope", {}, "function_not_found"),
    ]:
        try:
            call(function, payload)
            raise AssertionError(f"{function} did not fail")
        except InvocationError as error:
            assert words in f"{error.code}: {error}", error

    # A function on another connection, and one without an answer.
    hosted = Events()
    other.register_function("other::double", lambda data: {"n": data["n"] * 2})
    other.register_function("other::note", hosted.handler)
    until(lambda: "other::note" in str(call("engine::functions::list", {})), "hosting")
    assert call("other::double", {"n": 21}) == {"n": 42}
    worker.trigger({"function_id": "other::note", "payload": {"x": 1}, "action": TriggerAction.Void()})
    assert hosted.wait_for(1, "void call")[0]["x"] == 1
    assert call("engine::workers::list", {})["workers"], "workers are listed"

    # The server dies; the SDK reconnects, and bindings work again.
    server.kill()
    server.start()
    before = len(seen["created"].seen)
    until(lambda: reconnected(call), "reconnect")
    until(lambda: "py::on-created" in str(call("engine::functions::list", {})), "registering again")
    page = call("session::messages", {"session_id": session})
    assert len(page["messages"]) == 1, "what was acknowledged is there after kill -9"
    time.sleep(0.5)
    call("session::create", {"title": "after", "metadata": {"owner": "u_7"}})
    assert seen["created"].wait_for(before + 1, "created after reconnect")[-1]["title"] == "after"

    worker.shutdown()
    other.shutdown()
    server.kill()
    print("python sdk: ok")


def reconnected(call):
    try:
        return call("session::list", {})["sessions"] is not None
    except Exception:
        return False


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)

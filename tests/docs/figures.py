"""Measures the figures of docs/why.md and docs/operations/sizing.md: Bough over HTTP beside files and SQLite in this process.

    BOUGH=target/release/bough python3 tests/docs/figures.py [FOLDER]

It is no test: it takes about a minute and asserts nothing. FOLDER is where the data go; it decides which disk is measured.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = os.environ.get("BOUGH", "bough")
SHAPES = ((1_000, 10), (10, 1_000))
ROUNDS, WRITERS = 5, 16
TEXT = "All work and no play makes a dull day. " * 26
MESSAGE = {"role": "user", "content": [{"type": "text", "text": TEXT}], "timestamp": 0}
LINE = json.dumps(MESSAGE)


class Server:
    """A server of its own in a folder."""

    def __init__(self, folder: Path) -> None:
        command = [PROGRAM, "serve", "--data-dir", str(folder), "--listen", "127.0.0.1:0", "--bus", "off"]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        found = (line.split()[1] for line in self.process.stdout if line.split()[:1] == ["HTTP"])
        self.address = next(found).removeprefix("http://")
        self.start_seconds = time.perf_counter() - began

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=120)

    def memory(self) -> int:
        """Resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)


def post(connection: http.client.HTTPConnection, path: str, body: object) -> None:
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path} answered {answer.status}")


def in_bough(server: Server, session: str) -> Callable[[], None]:
    connection = server.connect()
    body = {"message": MESSAGE, "create": True}
    return lambda: post(connection, f"/v1/sessions/{session}/entries", body)


def in_file(folder: Path, session: str) -> Callable[[], None]:
    file = open(folder / f"{session}.jsonl", "a")

    def append() -> None:
        file.write(LINE + "\n")
        file.flush()
        os.fdatasync(file.fileno())

    return append


def in_sqlite(path: Path, session: str) -> Callable[[], None]:
    database = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE IF NOT EXISTS messages (session TEXT, body TEXT)")
    return lambda: database.execute("INSERT INTO messages VALUES (?, ?)", (session, LINE))


def appends_per_second(writers: list[Callable[[], None]], seconds: float = 1.0) -> float:
    """Each writer appends again and again until the time is over; every append is durable before the next."""
    counts = [0] * len(writers)
    until = time.perf_counter() + seconds

    def work(number: int) -> None:
        while time.perf_counter() < until:
            writers[number]()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(writers))]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def size(path: Path) -> int:
    """Bytes that the disk gives to a file or to what is in a folder."""
    files = [path] if path.is_file() else [inner for inner in path.rglob("*") if inner.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files)


def show_appends(folder: Path) -> None:
    server = Server(folder / "appends")
    for count in (1, WRITERS):
        rates: dict[str, list[float]] = {"Bough over HTTP": [], "JSONL, fdatasync": [], "SQLite, WAL, FULL": []}
        for turn in range(ROUNDS):
            names = [f"w{turn}-{number}" for number in range(count)]
            rates["Bough over HTTP"].append(appends_per_second([in_bough(server, name) for name in names]))
            rates["JSONL, fdatasync"].append(appends_per_second([in_file(folder, name) for name in names]))
            rates["SQLite, WAL, FULL"].append(appends_per_second([in_sqlite(folder / "a.db", name) for name in names]))
        for name, found in rates.items():
            print(f"{name:<20} {count:>3} writers: {statistics.median(found):>8.0f} durable appends a second")
    server.stop()


def show_sizes(folder: Path, sessions: int, messages: int) -> None:
    folder.mkdir()
    data, database = folder / "data", folder / "size.db"
    server = Server(data)
    connection, insert = server.connect(), in_sqlite(database, "s")
    with open(folder / "size.jsonl", "w") as file:
        for number in range(sessions):
            entries = [{"message": MESSAGE}] * messages
            post(connection, f"/v1/sessions/s{number}/entries/batch", {"entries": entries, "create": True})
            for _ in range(messages):
                file.write(LINE + "\n")
                insert()
    memory = server.memory()
    server.stop()
    text = len(LINE) * sessions * messages
    rows = {
        "sessions": data / "sessions",
        "catalogue": data / "catalogue.sqlite",
        "JSONL": folder / "size.jsonl",
        "SQLite": database,
    }
    print(f"{sessions} sessions of {messages} messages, {text / 1e6:.1f} MB of JSON")
    for name, path in rows.items():
        print(f"{name:<20} {size(path) / 1e6:>8.1f} MB, {size(path) / text:.2f} of the JSON")
    again = Server(data)
    print(f"server               {memory / 1e6:>8.0f} MB of memory while it wrote, {again.memory() / 1e6:.0f} MB after a restart")
    print(f"start                {again.start_seconds * 1e3:>8.0f} ms until it listens")
    again.stop()


def main() -> None:
    place = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for sessions, messages in SHAPES:
            show_sizes(Path(folder, f"{sessions}-{messages}"), sessions, messages)
        show_appends(Path(folder))


if __name__ == "__main__":
    main()

"""Runs the programs of `examples/` on a server, and asserts what each prints.

    run_examples.py ROOT

BOUGH names the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from server import SECONDS_MAX, compile_ts, serving

ROOT = Path(sys.argv[1]).resolve()
EXAMPLES = ROOT / "examples"

BRANCHES = ["went on with the long answer; 2 branches are kept"]
SUB_AGENTS = ["Report about trees", "Research: hazel done", "Research: birch done"]
EXPECTED = {
    "python/branches.py": BRANCHES,
    "python/recorder.py": ["user Name a tree.", "assistant Hazel."],
    "python/sub_agents.py": SUB_AGENTS,
    "typescript/branches.ts": BRANCHES,
    "typescript/recorder.ts": ['"role":"user"', '"text":"Hazel."'],
    "typescript/sub-agents.ts": SUB_AGENTS,
}
CHATS = ["python/chat_server.py", "typescript/chat-server.ts"]


def command(name: str, folder: Path) -> list[str]:
    source = EXAMPLES / name
    if source.suffix == ".py":
        return [sys.executable, str(source)]
    return ["node", str(compile_ts(ROOT, source.read_text(), folder))]


def check_program(name: str, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command(name, folder), env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode == 0, done.stderr
    for text in EXPECTED[name]:
        assert text in " ".join(done.stdout.split()).replace("  ", " "), f"{text!r} is not in\n{done.stdout}"


def check_chat(name: str, folder: Path, environment: dict[str, str]) -> None:
    """Follows a chat while a question is asked, until the reply is finished; then again after an event in the middle."""
    words = [*command(name, folder), "0"]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        asking = threading.Thread(target=lambda: urllib.request.urlopen(f"{address}/chats/one", b"Why?", SECONDS_MAX).close())
        asking.start()
        cursor, reply = read_reply(address, {})
        asking.join()
        assert reply == "You asked: Why?", reply
        _, rest = read_reply(address, {"last-event-id": cursor})
        assert rest == reply, rest
    finally:
        process.terminate()
        process.wait(timeout=SECONDS_MAX)


def read_reply(address: str, headers: dict[str, str]) -> tuple[str, str]:
    """The cursor of the first event, and the text of the reply as the events tell it."""
    cursor = text = kind = ""
    request = urllib.request.Request(f"{address}/chats/one/events", headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as lines:
        for line in lines:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "id":
                cursor = cursor or value
            elif field == "event":
                kind = value
            elif field == "data" and kind == "message.delta":
                text += json.loads(value)["text"]
            elif field == "data" and kind == "message.snapshot":
                text = json.loads(value)["message"]["content"][0]["text"]
            if kind == "message.finished":
                return cursor, text
    raise AssertionError("the stream ended before the reply")


def main() -> int:
    began, passed, failed = time.monotonic(), 0, 0
    found = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.*")}
    assert found == {*EXPECTED, *CHATS}, f"not every example is run: {found ^ {*EXPECTED, *CHATS}}"
    for name in sorted(found):
        with tempfile.TemporaryDirectory() as place, serving(Path(place, "data")) as address:
            check = check_chat if name in CHATS else check_program
            try:
                check(name, Path(place), {**os.environ, "BOUGH_SERVER": f"http://{address}"})
                passed += 1
            except (AssertionError, OSError, subprocess.TimeoutExpired) as problem:
                print(f"examples/{name} failed\n{problem}")
                failed += 1
    # In the form that `cargo xtask test` counts.
    print(f"{passed} passed, {failed} failed in {time.monotonic() - began:.1f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Records the events of an agent while it works, and reads the session that they made.

    python recorder.py
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from boughdb import Bough

USAGE = {"input": 12, "output": 3, "reasoning": 0, "cache_read": 0, "cache_write": 0, "total_tokens": 15}


def agent(session_id: str) -> Iterator[dict[str, Any]]:
    """Stands for an agent: one run in which a question is asked and answered."""
    loop_id = f"{session_id}.1"
    now = datetime.now(timezone.utc)
    at, milliseconds = now.isoformat(), int(now.timestamp() * 1000)

    def message(role: str, text: str, **more: object) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"type": "MessageEnd", "loop_id": loop_id, "message": {"role": role, "content": content, "timestamp": milliseconds, **more}}

    yield {
        "type": "AgentStart",
        "agent_id": "example",
        "session_id": session_id,
        "loop_id": loop_id,
        "parent_loop_id": None,
        "continuation_kind": "Initial",
        "timestamp": at,
    }
    yield message("user", "Name a tree.")
    yield message("assistant", "Hazel.", provider="local", model="small", stopReason="stop", usage=USAGE)
    yield {"type": "AgentEnd", "loop_id": loop_id, "messages": [], "timestamp": at, "usage": USAGE}


def main() -> None:
    bough = Bough()
    session_id = f"recorded-{uuid.uuid4().hex}"
    with bough.record() as recording:
        for event in agent(session_id):
            recording.send([event])
    for item in bough.session(session_id).messages():
        print(item["message"]["role"], item["message"]["content"][0]["text"])


if __name__ == "__main__":
    main()

"""What requests are made of: paths, queries, bodies and ids. Nothing here does I/O."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

QueryValue = str | int | bool | Sequence[str] | Mapping[str, Any] | None


@dataclass(frozen=True)
class Retries:
    """How often a request is sent, and how long to wait between the attempts.

    The pause doubles from `first_pause` to `longest_pause`, in seconds, and is spread at random, so that many clients do
    not come back at the same moment.
    """

    attempts: int = 6
    first_pause: float = 0.1
    longest_pause: float = 2.0

    def pause(self, attempt: int, retry_after: float | None = None) -> float:
        """Returns the seconds to wait after the failed attempt with this number, counted from 1."""
        doubled = self.first_pause * (2.0 ** min(attempt - 1, 16))
        pause = min(doubled, self.longest_pause)
        return max(retry_after or 0.0, pause * (0.5 + random.random() / 2))


def path(*parts: str) -> str:
    """Joins path segments below `/v1`, percent-encoded."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def query(values: Mapping[str, QueryValue]) -> tuple[tuple[str, str], ...]:
    """Returns query parameters: lists repeat their parameter, objects are JSON, `None` is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, (str, int)):
            pairs.append((name, str(value)))
        elif isinstance(value, Mapping):
            pairs.append((name, to_json(value).decode()))
        else:
            pairs.extend((name, item) for item in value)
    return tuple(pairs)


def body(**members: Any) -> dict[str, Any]:
    """Returns a request body without the members that are `None`."""
    return {name: value for name, value in members.items() if value is not None}


def to_json(value: Any) -> bytes:
    """Encodes a value as JSON; `NaN` and infinities, which JSON does not have, are a `ValueError`."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def new_id(prefix: str) -> str:
    """Draws an id that nobody else has."""
    return f"{prefix}_{secrets.token_hex(16)}"


def new_key() -> str:
    """Draws an `Idempotency-Key`."""
    return secrets.token_hex(16)


def as_message(message: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a message; a text is a message of the user."""
    if isinstance(message, str):
        return {"role": "user", "content": message}
    return message

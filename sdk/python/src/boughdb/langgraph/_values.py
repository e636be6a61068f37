"""Values of channels as JSON.

A value is `{"j": …}` when JSON says it exactly, and otherwise `{"t": …, "b": …}`: the framework's serializer, in base64.
"""

from __future__ import annotations

import base64
import math
from typing import Any, cast

Serde = Any

# JSON that is nested deeper is left to the serializer; the server has a bound too.
_DEPTH_MAX = 40


def is_plain_json(value: Any, depth: int = 0) -> bool:
    """Whether a value comes back exactly from JSON: no subclasses, no tuples, no other keys than texts."""
    kind = cast("type[Any]", type(value))
    if value is None or kind is bool or kind is int:
        return True
    if kind is str:
        return _is_text(cast("str", value))
    if kind is float:
        return math.isfinite(cast("float", value))
    if depth >= _DEPTH_MAX:
        return False
    if kind is list:
        return all(is_plain_json(item, depth + 1) for item in cast("list[Any]", value))
    if kind is dict:
        members = cast("dict[Any, Any]", value)
        return all(type(name) is str and _is_text(name) and is_plain_json(item, depth + 1) for name, item in members.items())
    return False


def _is_text(text: str) -> bool:
    """Whether a text can be sent: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def as_json(value: Any) -> Any:
    """The value, or `None` when it is not plain JSON."""
    return value if is_plain_json(value) else None


def opaque(value: Any, serde: Serde) -> dict[str, Any]:
    """A value as the serializer writes it."""
    kind, data = serde.dumps_typed(value)
    return {"t": kind, "b": base64.b64encode(data).decode()}


def from_opaque(stored: dict[str, Any], serde: Serde) -> Any:
    """The value that `opaque` was given."""
    return serde.loads_typed((stored["t"], base64.b64decode(stored["b"])))

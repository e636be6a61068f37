"""The ids of entries.

An entry of a checkpoint is named by its namespace, its checkpoint and a few characters of its own, so that a checkpoint and its
writes are read by how their ids begin.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from uuid import UUID

# How many characters tell entries of one checkpoint apart.
_SUFFIX = 6


def new_entry_id() -> str:
    """A short id: each entry of a session repeats it, and there may be thousands."""
    return secrets.token_urlsafe(9)


def short_id(text: str) -> str:
    """An id as entries write it, again and again: a UUID in 22 characters, and any other text behind a mark."""
    try:
        uuid = UUID(text)
    except ValueError:
        return f"={text}"
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=") if str(uuid) == text else f"={text}"


def long_id(short: str) -> str:
    """The id that `short_id` was given."""
    if short.startswith("="):
        return short[1:]
    return str(UUID(bytes=base64.urlsafe_b64decode(f"{short}==")))


def namespace_key(namespace: str) -> str:
    """A short name of a namespace, for ids."""
    return hashlib.sha256(namespace.encode()).hexdigest()[:12] if namespace else "-"


def prefix_of(namespace: str, checkpoint_id: str | None = None) -> str:
    """How the ids of a namespace's entries begin, or those of one checkpoint and its writes."""
    key = f"{namespace_key(namespace)}|"
    return key if checkpoint_id is None else f"{key}{short_id(checkpoint_id)}|"


def new_id_of(namespace: str, checkpoint_id: str) -> str:
    """A new entry of a checkpoint: itself, or writes for it."""
    return prefix_of(namespace, checkpoint_id) + new_entry_id()[:_SUFFIX]


def checkpoint_of(entry_id: str) -> str:
    """The checkpoint that an entry belongs to, by its id."""
    return long_id(entry_id.partition("|")[2][: -_SUFFIX - 1])

"""Short forms of what the framework says with every checkpoint in almost the same words.

Each is used only where the usual form comes back from it exactly.
"""

from __future__ import annotations

from typing import Any, cast

# The version of the framework's checkpoints that the short form stands for.
_VERSION = 4


def short_seen(seen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The versions that nodes have seen; of a node that only its own trigger wakes, just the version."""
    return {node: versions[_trigger(node)] if set(versions) == {_trigger(node)} else versions for node, versions in seen.items()}


def long_seen(stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What `short_seen` was given."""
    return {
        node: dict(cast("dict[str, Any]", seen)) if isinstance(seen, dict) else {_trigger(node): seen}
        for node, seen in stored.items()
    }


def _trigger(node: str) -> str:
    return node if node == "__start__" else f"branch:to:{node}"


def short_metadata(stored: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """Stored metadata: the source and the step, where it says nothing else."""
    said: Any = stored.get("j", {})
    if set(said) == {"source", "step", "parents"} and said["parents"] == {}:
        return [said["source"], said["step"]]
    return stored


def long_metadata(stored: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """What `short_metadata` was given."""
    if isinstance(stored, list):
        return {"j": {"source": stored[0], "step": stored[1], "parents": {}}}
    return stored


def short_members(stored: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """Stored members of a checkpoint: its time and the channels that changed, where it says nothing else."""
    said: Any = stored.get("j", {})
    if set(said) <= {"v", "ts", "updated_channels"} and said.get("v") == _VERSION and "ts" in said:
        return [said["ts"], *said.get("updated_channels", ())]
    return stored


def long_members(stored: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """What `short_members` was given."""
    if not isinstance(stored, list):
        return stored
    changed = {"updated_channels": stored[1:]} if stored[1:] else {}
    return {"j": {"v": _VERSION, "ts": stored[0], **changed}}

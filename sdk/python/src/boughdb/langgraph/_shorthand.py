"""Short forms of what the framework says with every checkpoint in almost the same words.

Each is used only where the usual form comes back from it exactly.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, cast

# The version of the framework's checkpoints that the short form stands for.
_VERSION = 4
# How the names of the channels begin that wake nodes, and the paths of tasks that were woken by one.
_BRANCH = "branch:to:"
_PULL = "~__pregel_pull, "
# The node that stands for the input, which sees nothing, and its short form.
_INPUT = "__input__"
_SHORT_INPUT = "<"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def short_checkpoint(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a checkpoint as its entry keeps it."""
    stored = {**document, "cv": _short_names(document["cv"]), "c": _short_names(document["c"])}
    if isinstance(document["x"], list):
        time, *changed = cast("list[str]", document["x"])
        stored["x"] = [_short_time(time), *(short_text(name, _BRANCH) for name in changed)]
    return stored


def long_checkpoint(stored: dict[str, Any]) -> dict[str, Any]:
    """What `short_checkpoint` was given."""
    document = {**stored, "cv": _long_names(stored["cv"]), "c": _long_names(stored["c"])}
    if isinstance(stored["x"], list):
        time, *changed = cast("list[Any]", stored["x"])
        document["x"] = [_long_time(time), *(long_text(name, _BRANCH) for name in changed)]
    return document


def short_writes(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a task's writes as its entry keeps it."""
    stored = {**document, "w": [[short_text(name, _BRANCH), value] for name, value in document["w"]]}
    return {**stored, "p": short_text(document["p"], _PULL)} if "p" in document else stored


def long_writes(stored: dict[str, Any]) -> dict[str, Any]:
    """What `short_writes` was given."""
    document = {**stored, "w": [[long_text(name, _BRANCH), value] for name, value in stored["w"]]}
    return {**document, "p": long_text(stored["p"], _PULL)} if "p" in stored else document


def short_text(text: str, beginning: str) -> str:
    """A text that mostly begins so: `>` instead, and a mark before a text that could be taken for a short form."""
    if text.startswith(beginning):
        return ">" + text[len(beginning) :]
    return f"={text}" if text.startswith((">", "=")) else text


def long_text(stored: str, beginning: str) -> str:
    """What `short_text` was given."""
    if stored.startswith(">"):
        return beginning + stored[1:]
    return stored[1:] if stored.startswith("=") else stored


def _short_names(members: dict[str, Any]) -> dict[str, Any]:
    return {short_text(name, _BRANCH): value for name, value in members.items()}


def _long_names(members: dict[str, Any]) -> dict[str, Any]:
    return {long_text(name, _BRANCH): value for name, value in members.items()}


def _short_time(time: str) -> str | int:
    """A time in microseconds, where that says it exactly."""
    try:
        micros = (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError):
        return time
    return micros if _long_time(micros) == time else time


def _long_time(stored: str | int) -> str:
    return stored if isinstance(stored, str) else (_EPOCH + timedelta(microseconds=stored)).isoformat()


def short_seen(seen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The versions that nodes have seen; of a node that only its own trigger wakes, just the version."""
    return dict(_short_node(node, versions) for node, versions in seen.items())


def _short_node(node: str, versions: dict[str, Any]) -> tuple[str, Any]:
    if node == _INPUT and not versions:
        return _SHORT_INPUT, 0
    return node, versions[_trigger(node)] if set(versions) == {_trigger(node)} else versions


def long_seen(stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What `short_seen` was given."""
    return dict(_long_node(node, seen) for node, seen in stored.items())


def _long_node(node: str, seen: Any) -> tuple[str, dict[str, Any]]:
    if node == _SHORT_INPUT and seen == 0:
        return _INPUT, {}
    return node, dict(cast("dict[str, Any]", seen)) if isinstance(seen, dict) else {_trigger(node): seen}


def _trigger(node: str) -> str:
    return node if node == "__start__" else _BRANCH + node


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

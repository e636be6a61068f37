"""LangChain's messages as messages of Bough, and back.

What a person reads is in the members that Bough knows; what only LangChain knows is under `langchain`, without repeating the
text. A message that would not come back equal is kept as the framework's serializer writes it, beside its text.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from ._values import as_json, from_opaque, is_plain_json, opaque

Serde = Any

_CLASSES: dict[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "AIMessageChunk": AIMessageChunk,
    "system": SystemMessage,
    "tool": ToolMessage,
}
_READABLE = frozenset(_CLASSES.values())
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "tool": "function_result", "system": "system"}
# Why LangChain's models stopped, in the words of Bough.
_STOP_REASONS = {"tool_calls": "function_call", "tool_use": "function_call", "length": "length", "max_tokens": "length"}


def is_readable(value: Any) -> bool:
    """Whether a value is a message that a person would read."""
    return type(value) in _READABLE


def copied(message: BaseMessage) -> BaseMessage:
    """A copy that shares nothing that can be changed. It is quicker than a deep copy: most members are texts, or empty."""
    fields: dict[str, Any] = {}
    for name, value in message.__dict__.items():
        kind = cast("type[Any]", type(value))
        if kind is list or kind is dict:
            fields[name] = deepcopy(value) if value else kind()
    return message.model_copy(update=fields)


def to_entry(message: BaseMessage, serde: Serde) -> dict[str, Any]:
    """The message as Bough keeps it."""
    entry = _readable(message)
    members = _members(message)
    if members is not None:
        candidate = {**entry, "langchain": members}
        if _is_same(message, candidate, serde):
            return _short(candidate)
    return _short({**entry, "langchain": opaque(message, serde)})


def _short(entry: dict[str, Any]) -> dict[str, Any]:
    """The same message in fewer bytes: the server reads a text as its only block, and that a reply came to its end."""
    blocks: list[dict[str, Any]] = entry["content"]
    text = blocks[0].get("text") if len(blocks) == 1 else None
    short = {**entry, "content": text} if text is not None else dict(entry)
    if short.get("stop_reason") == "end":
        del short["stop_reason"]
    return short


def from_entry(entry: dict[str, Any], serde: Serde) -> BaseMessage:
    """The message that `to_entry` was given."""
    members: dict[str, Any] = entry["langchain"]
    if "b" in members:
        return cast("BaseMessage", from_opaque(members, serde))
    members = dict(members)
    members.pop("ids", None)
    kind = members.pop("type")
    content: Any = entry["content"]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if "content" not in members:
        members["content"] = _text(blocks)
    calls = [block for block in blocks if block["type"] == "function_call"]
    if calls:
        members["tool_calls"] = [
            {"name": call["function_id"], "args": call["arguments"], "id": call["id"], "type": "tool_call"} for call in calls
        ]
    if kind == "tool":
        members["tool_call_id"] = entry["function_call_id"]
    return _CLASSES[kind](**members)


def _is_same(message: BaseMessage, entry: dict[str, Any], serde: Serde) -> bool:
    try:
        back = from_entry(entry, serde)
    except (ValueError, TypeError, KeyError):
        return False
    return type(back) is type(message) and back == message


def _members(message: BaseMessage) -> dict[str, Any] | None:
    """What the readable members do not say, or `None` when JSON cannot say it."""
    kind = message.type
    if _CLASSES.get(kind) is not type(message):
        return None
    fields = {**message.__dict__, **(message.__pydantic_extra__ or {})}
    if isinstance(message.content, str):
        fields.pop("content")
    if _has_plain_calls(message):
        fields.pop("tool_calls")
    fields.pop("tool_call_id", None)
    kept = {name: value for name, value in fields.items() if value not in (None, [], {}, False) and name != "type"}
    if kept.get("status") == "success":
        del kept["status"]
    return {"type": kind, **kept} if is_plain_json(kept) else None


def _has_plain_calls(message: BaseMessage) -> bool:
    calls: list[Any] = getattr(message, "tool_calls", None) or []
    return bool(calls) and all(
        set(call) == {"name", "args", "id", "type"} and isinstance(call["id"], str) and is_plain_json(call["args"])
        for call in calls
    )


def _readable(message: BaseMessage) -> dict[str, Any]:
    role = _ROLES.get(message.type)
    blocks = _blocks(message)
    if role is None:
        return {"role": "custom", "custom_type": message.type, "content": blocks}
    entry: dict[str, Any] = {"role": role, "content": blocks}
    if isinstance(message, AIMessage):
        entry.update(_reply(message))
    if isinstance(message, ToolMessage):
        entry.update(function_call_id=message.tool_call_id, function_id=message.name or "")
        if message.status == "error":
            entry["is_error"] = True
    return entry


def _reply(message: AIMessage) -> dict[str, Any]:
    about: dict[str, Any] = as_json(message.response_metadata) or {}
    known: dict[str, Any] = {"model": about.get("model_name"), "provider": about.get("model_provider")}
    known["stop_reason"] = _STOP_REASONS.get(str(about.get("finish_reason") or about.get("stop_reason")), "end")
    if message.tool_calls:
        known["stop_reason"] = "function_call"
    if message.usage_metadata:
        usage = message.usage_metadata
        known["usage"] = {"input": usage["input_tokens"], "output": usage["output_tokens"]}
    return {name: value for name, value in known.items() if value is not None and value != ""}


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in _texts(message.content)]
    if _has_plain_calls(message):
        calls: list[dict[str, Any]] = getattr(message, "tool_calls", [])
        blocks += [
            {"type": "function_call", "id": call["id"], "function_id": call["name"], "arguments": call["args"]} for call in calls
        ]
    return blocks


def _texts(content: str | list[Any]) -> list[str]:
    parts: list[Any] = [content] if isinstance(content, str) else content
    texts = [part if isinstance(part, str) else _part_text(part) for part in parts]
    # Half of a surrogate pair cannot be sent; the serializer keeps it.
    return [text.encode(errors="replace").decode() for text in texts if text]


def _part_text(part: Any) -> str:
    text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _text(blocks: list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in blocks if block["type"] == "text")

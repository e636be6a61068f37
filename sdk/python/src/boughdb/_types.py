"""What the server answers, as typed dictionaries.

An answer is the JSON that the server sent: members that a newer server adds are there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import NotRequired, Required, TypedDict

Json = dict[str, Any]
Message = Mapping[str, Any]
"""A message in one of the formats."""

Format = Literal["bough", "anthropic", "openai-chat", "openai-responses", "gemini", "ai-sdk", "pi", "phi"]
Role = Literal["user", "assistant", "function_result", "custom"]
Status = Literal["idle", "working", "done", "error"]
StopReason = Literal["end", "length", "function_call", "aborted", "error"]
DeltaKind = Literal["text", "thinking", "tool_arguments"]


class SessionMeta(TypedDict):
    """What a session says of itself."""

    session_id: str
    title: str
    description: str
    status: Status
    status_reason: NotRequired[str]
    metadata: NotRequired[Json]
    forked_from: NotRequired[str]
    created_at: int
    updated_at: int
    message_count: int
    active_leaf: NotRequired[str | None]
    version: NotRequired[str]


class Appended(TypedDict):
    """Where an entry went."""

    entry_id: str
    parent_id: str | None
    timestamp: int
    revision: NotRequired[int]


class Custom(TypedDict):
    """What a custom entry keeps: any JSON under a word of the application."""

    custom_type: str
    data: Any


class NewEntry(TypedDict, total=False):
    """One entry of a batch: exactly one of `message` and `custom`."""

    message: Message
    custom: Custom
    format: Format
    entry_id: str
    parent_id: str | None


class Entry(TypedDict, total=False):
    """One entry of a session: exactly one of `message` and `custom`."""

    entry_id: Required[str]
    parent_id: str | None
    revision: int
    timestamp: int
    siblings: list[str]
    message: Json
    """In its format. Of a message that still streams, `stop_reason` is absent until it finishes."""
    custom: Custom
    losses: list[Json]


class EntryPage(TypedDict):
    """Some entries, and where to go on."""

    entries: list[Entry]
    next_cursor: NotRequired[str]


class Branch(TypedDict):
    """One branch, by the entry at its end."""

    entry_id: str
    depth: int
    last_activity: int
    active: bool
    label: NotRequired[str]


class Document(TypedDict):
    """A document by key."""

    key: str
    version: int
    created_at: int
    updated_at: int
    value: NotRequired[Any]


class NewDocument(TypedDict):
    """A document to put."""

    key: str
    value: Any
    expected_version: NotRequired[int]


class DocumentRemoval(TypedDict):
    """A document to delete."""

    key: str
    expected_version: NotRequired[int]


class PutDocument(TypedDict):
    """A document that was put."""

    key: str
    version: int


class WrittenDocuments(TypedDict):
    """What a batch of documents did."""

    documents: list[PutDocument]
    deleted: int


class Usage(TypedDict, total=False):
    """What one message cost."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost_usd: float


class UsageTotals(TypedDict):
    """What several messages cost together."""

    messages: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost_usd: float


class UsageByModel(TypedDict):
    """Usage by model, with the sum of all."""

    total: UsageTotals
    models: dict[str, UsageTotals]


class SessionUsage(TypedDict):
    """What a session cost, and the branch that was asked for."""

    session: UsageByModel
    branch: UsageByModel


class ContextItem(TypedDict):
    """One message of a context."""

    entry_id: str
    message: Json


class FormattedConversation(TypedDict):
    """A conversation as the API of a provider takes it."""

    messages: list[Json]
    """What to send."""
    system: NotRequired[Any]
    """What instructs the model, for the formats that take it beside the messages."""
    losses: NotRequired[list[Json]]
    """What the format could not carry."""


class Context(TypedDict):
    """What a model would be sent."""

    messages: list[ContextItem]
    """The entries, in Bough's own form."""
    estimated_tokens: int
    tokens: int
    """As the newest answer reported them, with estimates for what came after it."""
    window: NotRequired[int]
    """The window of the session's model, if it is known."""
    left_out: int
    conversation: NotRequired[FormattedConversation]
    """What to send to the provider, when a format was asked for."""


class Compaction(TypedDict):
    """What a compaction does, or would do."""

    session_id: str
    written: bool
    reason: NotRequired[str]
    """Why there is nothing to compact, as a word."""
    nothing_to_do: NotRequired[str]
    """The same as a sentence."""
    active_leaf: NotRequired[str]
    window: NotRequired[int]
    tokens_before: NotRequired[int]
    tokens_after: NotRequired[int]
    summary: NotRequired[str]
    entry_id: NotRequired[str]
    """The entry that was appended; a recorded session has blocks over its `loops` instead."""
    first_kept_entry_id: NotRequired[str]
    summarised_entries: int
    kept_entries: int
    kept_tokens: int
    split_turn: bool
    files: Json
    loops: list[str]
    summarised_turns: int
    conversation: NotRequired[str]
    """What the summary replaces, as text for a model, if it was asked for."""


class UndoneCompaction(TypedDict):
    """What undoing a compaction did."""

    session_id: str
    undone: NotRequired[str]
    entry_id: NotRequired[str]
    loops: list[str]
    nothing_to_do: NotRequired[str]


class Snippet(TypedDict):
    """A line of text with the places that were found."""

    kind: str
    text: str
    highlights: list[list[int]]


class SearchHit(TypedDict):
    """One entry, or one session, that a search found."""

    meta: SessionMeta
    details: NotRequired[Json]
    preview: NotRequired[str]
    entry_id: NotRequired[str]
    revision: NotRequired[int]
    role: NotRequired[Role]
    timestamp: NotRequired[int]
    snippet: NotRequired[Snippet]
    on_active_path: NotRequired[bool]
    score: NotRequired[float]


class SearchResult(TypedDict):
    """One page of what a search found, the best first."""

    hits: list[SearchHit]
    next_cursor: NotRequired[str]


@dataclass(frozen=True)
class Event:
    """One event of a session.

    `cursor` is its position: `watch(after=event.cursor)` goes on behind it. `data` is its payload.
    """

    type: str
    cursor: str
    session_id: str
    data: Json

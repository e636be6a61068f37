# Made from ../_async/session.py by tools/make_sync.py; change it there.
"""One session: a conversation that branches."""

from __future__ import annotations

from collections.abc import Iterator, Iterable, Mapping, Sequence
from typing import Any, Literal

from .._errors import LeafConflict, NotFound
from .._requests import as_message, body, new_id, new_key, path
from .._types import (
    Appended,
    Branch,
    Compaction,
    Context,
    Custom,
    Entry,
    EntryPage,
    Format,
    Json,
    Message,
    NewEntry,
    Role,
    SessionMeta,
    SessionUsage,
    Status,
    UndoneCompaction,
)
from .http import Http
from .reply import Reply
from .watch import Watch

# A delta is sent at least so many seconds after the one before.
_JOIN_INTERVAL = 0.05


class Session:
    """A session of the store. Made by `create`, `ensure` or `session` of the client; making one costs no request."""

    def __init__(self, http: Http, session_id: str) -> None:
        self._http = http
        self.id = session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    # Writing.

    def append(
        self,
        message: str | Message,
        *,
        format: Format | None = None,
        entry_id: str | None = None,
        parent_id: str | None = None,
        expected_leaf: str | None = None,
        origin: Json | None = None,
        create: bool = False,
    ) -> Appended:
        """Appends a message and returns its entry. A text is a message of the user.

        The message is in the given format, Bough's own when there is none, and is kept as it is. It goes below the active leaf,
        or below `parent_id`, which begins a branch. `expected_leaf` appends only when the active leaf still is this entry (`""`
        for a session without entries) and raises `LeafConflict` otherwise. `create` makes the session when it is missing.

        Repeating a call with the same `entry_id` changes nothing; without one, the client draws it, so that a request that is
        sent again after a broken connection is stored once.

        >>> session = bough.create("Weather")
        >>> asked = session.append("Will it rain?")
        >>> reply = {"role": "assistant", "content": [{"type": "text", "text": "No."}], "stop_reason": "end_turn"}
        >>> answered = session.append(reply, format="anthropic")
        >>> answered["parent_id"] == asked["entry_id"]
        True
        """
        return self._append(
            body(
                message=as_message(message),
                format=format,
                entry_id=entry_id,
                parent_id=parent_id,
                expected_leaf=expected_leaf,
                origin=origin,
                create=create or None,
            )
        )

    def append_custom(
        self,
        custom_type: str,
        data: Any,
        *,
        entry_id: str | None = None,
        parent_id: str | None = None,
        expected_leaf: str | None = None,
        origin: Json | None = None,
        create: bool = False,
    ) -> Appended:
        """Appends any JSON under a word of the application. It is no message, and conversations leave it out.

        >>> session = bough.create("Weather")
        >>> noted = session.append_custom("forecast", {"rain_mm": 0.0})
        >>> (session.entry(noted["entry_id"]))["custom"]["data"]
        {'rain_mm': 0.0}
        """
        return self._append(
            body(
                custom=Custom(custom_type=custom_type, data=data),
                entry_id=entry_id,
                parent_id=parent_id,
                expected_leaf=expected_leaf,
                origin=origin,
                create=create or None,
            )
        )

    def append_many(
        self,
        entries: Iterable[NewEntry],
        *,
        expected_leaf: str | None = None,
        meta: Mapping[str, Any] | None = None,
        create: bool = False,
    ) -> list[Appended]:
        """Appends several entries in one durable commit, all of them or none, and returns them in order.

        Each is `{"message": …}` or `{"custom": {"custom_type": …, "data": …}}`, with `format`, `entry_id` and `parent_id` where
        they are needed. `meta` changes the title, description or metadata in the same commit.

        >>> session = bough.session("trip")
        >>> both = session.append_many(
        ...     [{"message": {"role": "user", "content": "Book a train"}}, {"custom": {"custom_type": "budget", "data": 120}}],
        ...     create=True,
        ... )
        >>> [item["message"]["role"] for item in session.messages()]
        ['user']
        """
        sent = body(
            entries=[{"entry_id": new_id("e"), **entry} for entry in entries],
            expected_leaf=expected_leaf,
            meta=meta,
            create=create or None,
        )
        answer = self._http.call("POST", self._path("entries", "batch"), body=sent, key=new_key())
        return answer["entries"]

    def stream(
        self,
        message: Message | None = None,
        *,
        model: str | None = None,
        format: Format | None = None,
        entry_id: str | None = None,
        parent_id: str | None = None,
        expected_leaf: str | None = None,
        origin: Json | None = None,
        create: bool = False,
        join_interval: float = _JOIN_INTERVAL,
    ) -> Reply:
        """Begins a message that is written piece by piece; readers see each piece as soon as it is durable.

        What is written within `join_interval` seconds is sent together. The message is finished at the end of the block, also
        when the body raises. It is a message of the model unless `message` says otherwise.

        >>> session = bough.create("Poem")
        >>> with session.stream(model="m-1") as reply:
        ...     for word in ["Roses ", "are ", "red"]:
        ...         reply.text(word)
        ...     reply.finish(usage={"input": 12, "output": 3})
        >>> (session.entry(reply.entry_id))["message"]["content"]
        [{'type': 'text', 'text': 'Roses are red'}]
        """
        begun: dict[str, Any] = {"role": "assistant", "content": [], **(message or {}), **body(model=model)}
        begin = body(
            message=begun,
            stream=True,
            format=format,
            entry_id=entry_id or new_id("e"),
            parent_id=parent_id,
            expected_leaf=expected_leaf,
            origin=origin,
            create=create or None,
        )
        return Reply(self._http, self.id, begin, join_interval)

    def update(self, entry_id: str, content: Sequence[Json], *, expected_revision: int | None = None) -> int:
        """Replaces a message's content and returns its revision.

        `expected_revision` makes the change conditional; `Conflict` says that somebody else was first.
        """
        sent = body(content=list(content), expected_revision=expected_revision)
        answer = self._http.call("PUT", self._path("entries", entry_id), body=sent)
        return answer["revision"]

    def label(self, entry_id: str, label: str | None) -> None:
        """Names an entry, or takes its name away."""
        self._http.call("PUT", self._path("entries", entry_id, "label"), body=body(label=label))

    # Reading.

    def meta(self) -> SessionMeta:
        """Reads what the session says of itself; raises `NotFound` when there is no such session."""
        answer = self._http.call("GET", self._path())
        meta: SessionMeta = answer["meta"]
        meta["active_leaf"] = answer.get("active_leaf")
        meta["version"] = answer["version"]
        return meta

    def exists(self) -> bool:
        """Whether there is such a session."""
        try:
            self.meta()
        except NotFound:
            return False
        return True

    def messages(
        self,
        *,
        format: Format | None = None,
        from_entry_id: str | None = None,
        roles: Sequence[Role] | None = None,
        include_custom: bool = False,
        order: Literal["oldest", "newest"] = "oldest",
        page_size: int | None = None,
    ) -> Iterator[Entry]:
        """The messages of the active path, or of the path to `from_entry_id`. Pages are read as they are needed.

        With `format`, each message is in that format: as it came, or mapped, with `losses` for what the format has no place for.

        >>> session = bough.create("Weather")
        >>> _ = session.append("Will it rain?")
        >>> [item["message"]["content"] for item in session.messages(format="openai-chat")]
        [[{'type': 'text', 'text': 'Will it rain?'}]]
        """
        place = self._path("messages") if order == "oldest" else self._path("messages", "tail")
        params = {
            "format": format,
            "from_entry_id": from_entry_id,
            "roles": roles,
            "include_custom": include_custom or None,
            "limit": page_size,
        }
        return self._http.pages(place, "messages", params)

    def entry(self, entry_id: str) -> Entry:
        """Reads one entry; raises `NotFound` when the session has no such entry."""
        answer = self._http.call("GET", self._path("entries", entry_id))
        return answer.get("entry", answer)

    def entries(
        self,
        *,
        ids: Sequence[str] | None = None,
        custom_type: str | None = None,
        id_prefix: str | None = None,
        order: Literal["oldest", "newest"] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        cursor: str | None = None,
    ) -> EntryPage:
        """Reads one page of entries by key, on any branch: by ids, by custom type, by how their ids begin.

        >>> session = bough.create("Weather")
        >>> for rain in [0, 3]:
        ...     _ = session.append_custom("forecast", rain)
        >>> page = session.entries(custom_type="forecast", order="newest", limit=1)
        >>> page["entries"][0]["custom"]["data"]
        3
        """
        params = {
            "ids": ids,
            "custom_type": custom_type,
            "id_prefix": id_prefix,
            "order": order,
            "limit": limit,
            "max_bytes": max_bytes,
            "cursor": cursor,
        }
        return self._http.call("GET", self._path("entries"), params=params)

    def context(
        self, *, format: Format | None = None, max_tokens: int | None = None, from_entry_id: str | None = None
    ) -> Context:
        """What a model would be sent: the path with compactions and summaries applied, within a budget of tokens."""
        params = {"format": format, "max_tokens": max_tokens, "from_entry_id": from_entry_id}
        return self._http.call("GET", self._path("context"), params=params)

    def usage(self, *, from_entry_id: str | None = None) -> SessionUsage:
        """Adds up tokens and cost, of the session and of one branch."""
        return self._http.call("GET", self._path("usage"), params={"from_entry_id": from_entry_id})

    def watch(
        self,
        *,
        after: str | None = None,
        types: Sequence[str] | None = None,
        roles: Sequence[Role] | None = None,
        deltas: bool = True,
    ) -> Watch:
        """Follows the session: an endless iterator of events that goes on over broken connections and restarts.

        It begins now, or behind a cursor; `"start"` is before the first event. Without `deltas`, messages come whole.

        >>> session = bough.create("Weather")
        >>> with session.watch() as events:
        ...     _ = session.append("Will it rain?")
        ...     event = next(events)
        >>> event.data["message"]["content"][0]["text"]
        'Will it rain?'
        """
        params = {"after": after, "types": types, "roles": roles, "deltas": None if deltas else "off"}
        return Watch(self._http, self._path("events"), params, self.id)

    # Branches.

    def branches(self) -> Iterator[Branch]:
        """The ends of the branches, the most recently active first."""
        return self._http.pages(self._path("branches"), "branches", {})

    def switch_to(self, entry_id: str | None, *, expected_leaf: str | None = None) -> None:
        """Makes the active path end at an entry, or before the first one with `None`.

        >>> session = bough.create("Weather")
        >>> first = session.append("Will it rain?")
        >>> second = session.append("Tomorrow, I mean.")
        >>> session.switch_to(first["entry_id"], expected_leaf=second["entry_id"])
        >>> len([item for item in session.messages()])
        1
        """
        try:
            if entry_id is None:
                self._http.call("DELETE", self._path("leaf"), params={"expected_leaf": expected_leaf})
            else:
                sent = body(entry_id=entry_id, expected_leaf=expected_leaf)
                self._http.call("PUT", self._path("leaf"), body=sent)
        except LeafConflict as conflict:
            # Where an earlier attempt arrived and its answer was lost, the leaf is where it should be.
            if conflict.attempts == 1 or conflict.active_leaf != entry_id:
                raise

    def fork(
        self,
        entry_id: str | None = None,
        *,
        title: str | None = None,
        new_session_id: str | None = None,
        whole: bool = False,
        keep_ids: bool = False,
    ) -> Session:
        """Copies the path to an entry, by default the active path, into a new session.

        With `whole`, every branch is copied. The new session has the id `new_session_id`, or one that the server draws; with
        `keep_ids`, the copies have the ids of the entries.

        >>> session = bough.create("Weather")
        >>> first = session.append("Will it rain?")
        >>> fork = session.fork(first["entry_id"], title="Another way")
        >>> (fork.meta())["forked_from"] == session.id
        True
        """
        sent = body(entry_id=entry_id, title=title, new_session_id=new_session_id, whole=whole or None, keep_ids=keep_ids or None)
        answer = self._http.call("POST", self._path("fork"), body=sent, key=new_key())
        return Session(self._http, answer["session_id"])

    def hide(self, entry_ids: Iterable[str]) -> int:
        """Hides entries from every read, all or none, and returns how many were hidden now. What follows them stays.

        >>> session = bough.create("Weather")
        >>> asked = session.append("My password is 1234.")
        >>> _ = session.append("Will it rain?")
        >>> session.hide([asked["entry_id"]])
        1
        >>> [item["message"]["content"][0]["text"] for item in session.messages()]
        ['Will it rain?']
        """
        answer = self._http.call("POST", self._path("entries", "hide"), body={"entry_ids": list(entry_ids)})
        return answer["hidden"]

    def plan_compaction(
        self, *, keep_recent_tokens: int | None = None, only_if_due: bool = False, include_conversation: bool = False
    ) -> Compaction:
        """What `compact` would do: what a summary would replace, what stays, and tokens before and after.

        With `include_conversation`, the plan has the text that a model can summarise.
        """
        params = {
            "keep_recent_tokens": keep_recent_tokens,
            "only_if_due": only_if_due or None,
            "include_conversation": include_conversation or None,
        }
        return self._http.call("GET", self._path("compaction"), params=params)

    def compact(
        self,
        summary: str | None = None,
        *,
        keep_recent_tokens: int | None = None,
        only_if_due: bool = False,
        expected_leaf: str | None = None,
    ) -> Compaction:
        """Puts a summary in the place of the older part of the conversation. Nothing is removed.

        Without a summary, fixed rules write one.

        >>> session = bough.create("Weather")
        >>> _ = session.append("Will it rain? " * 20)
        >>> _ = session.append("And tomorrow?")
        >>> done = session.compact("They talked about rain.", keep_recent_tokens=1)
        >>> (session.context())["messages"][0]["entry_id"] == done["entry_id"]
        True
        >>> (session.undo_compaction())["undone"] == done["entry_id"]
        True
        """
        sent = body(
            summary=summary,
            digest=summary is None or None,
            keep_recent_tokens=keep_recent_tokens,
            only_if_due=only_if_due or None,
            expected_leaf=expected_leaf,
        )
        return self._http.call("POST", self._path("compaction"), body=sent, key=new_key())

    def undo_compaction(self, *, expected_leaf: str | None = None) -> UndoneCompaction:
        """Takes the last compaction out of the context again."""
        params = {"expected_leaf": expected_leaf}
        return self._http.call("DELETE", self._path("compaction"), params=params, key=new_key())

    # The session itself.

    def set_meta(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionMeta:
        """Changes the title, the description or some of the metadata: members that are `None` in `metadata` are removed.

        >>> session = bough.create("Weather", metadata={"user": "u1", "draft": True})
        >>> meta = session.set_meta(metadata={"draft": None, "city": "Oslo"})
        >>> meta["metadata"]
        {'city': 'Oslo', 'user': 'u1'}
        """
        sent = body(title=title, description=description, metadata=metadata)
        answer = self._http.call("PATCH", self._path(), body=sent)
        return answer["meta"]

    def set_status(self, status: Status, *, reason: str | None = None) -> None:
        """Says what the session is doing."""
        self._http.call("PUT", self._path("status"), body=body(status=status, reason=reason))

    def archive(self) -> None:
        """Puts the session away: lists leave it out."""
        self._http.call("PUT", self._path("archive"), body={})

    def unarchive(self) -> None:
        """Takes an archived session back."""
        self._http.call("DELETE", self._path("archive"))

    def delete(self) -> bool:
        """Moves the session to the trash, where it is kept for a while. Returns whether it was there."""
        answer = self._http.call("DELETE", self._path())
        return answer["deleted"]

    def _path(self, *parts: str) -> str:
        return path("sessions", self.id, *parts)

    def _append(self, entry: dict[str, Any]) -> Appended:
        entry.setdefault("entry_id", new_id("e"))
        return self._http.call("POST", self._path("entries"), body=entry)

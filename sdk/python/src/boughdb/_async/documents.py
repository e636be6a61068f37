"""Documents by key: state of an application or of a user, and long-term memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from .._errors import NotFound
from .._requests import new_key, path
from .._types import Document, DocumentRemoval, NewDocument, WrittenDocuments
from .http import AsyncHttp

# How many keys are asked for at once.
_KEYS_AT_ONCE = 500


class AsyncDocuments:
    """The documents of a scope: any JSON by key. Made by `documents` of the client; making one costs no request.

    A scope begins with its first document. Its documents are in no list of sessions, in no search and in no event.

    >>> settings = bough.documents("settings")
    >>> await settings.put("theme", {"dark": True})
    1
    >>> (await settings.get("theme"))["value"]
    {'dark': True}
    """

    def __init__(self, http: AsyncHttp, scope: str) -> None:
        self._http = http
        self.scope = scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scope!r})"

    async def put(self, key: str, value: Any, *, expected_version: int | None = None) -> int:
        """Puts a document and returns its version.

        With `expected_version`, only if the document has this version, or with 0 only if there is none; otherwise it raises
        `DocumentConflict`.

        >>> counters = bough.documents("counters")
        >>> first = await counters.put("visits", 1, expected_version=0)
        >>> second = await counters.put("visits", 2, expected_version=first)
        """
        document: NewDocument = {"key": key, "value": value}
        if expected_version is not None:
            document["expected_version"] = expected_version
        written = await self.write([document])
        return written["documents"][0]["version"]

    async def get(self, key: str) -> Document | None:
        """Returns a document, or `None`."""
        if key in (".", ".."):
            # In a path these are steps.
            return next(iter(await self.get_many([key])), None)
        try:
            return await self._http.call("GET", path("kv", self.scope, key))
        except NotFound:
            return None

    async def get_many(self, keys: Iterable[str]) -> list[Document]:
        """Returns the documents with these keys, in this order; those that do not exist are left out."""
        wanted = list(keys)
        found: list[Document] = []
        for first in range(0, len(wanted), _KEYS_AT_ONCE):
            sent: dict[str, Any] = {"scope": self.scope, "keys": wanted[first : first + _KEYS_AT_ONCE], "limit": _KEYS_AT_ONCE}
            while True:
                # In a body rather than in a query: keys may be many, and of any spelling.
                page = await self._http.call("POST", path("call", "session::kv::list"), body=sent)
                found.extend(page["documents"])
                if page.get("next_cursor") is None:
                    break
                sent["cursor"] = page["next_cursor"]
        return found

    def list(
        self, *, prefix: str | None = None, keys_only: bool = False, page_size: int | None = None
    ) -> AsyncIterator[Document]:
        """The documents whose keys begin with `prefix`, in the order of the keys. Pages are read as they are needed.

        With `keys_only`, without their values.

        >>> notes = bough.documents("notes")
        >>> _ = await notes.write([{"key": "2026/05", "value": "May"}, {"key": "2026/04", "value": "April"}])
        >>> [note["value"] async for note in notes.list(prefix="2026/")]
        ['April', 'May']
        """
        params = {"prefix": prefix, "keys_only": keys_only or None, "limit": page_size}
        return self._http.pages(path("kv", self.scope), "documents", params)

    async def write(self, put: Iterable[NewDocument] = (), *, delete: Iterable[DocumentRemoval] = ()) -> WrittenDocuments:
        """Puts and deletes documents in one durable commit, all of them or none.

        Each may have an `expected_version`; where one is not met, nothing is written and `DocumentConflict` is raised.
        """
        sent = {"put": list(put), "delete": list(delete)}
        return await self._http.call("POST", path("kv", self.scope), body=sent, key=new_key())

    async def delete(self, key: str, *, expected_version: int | None = None) -> bool:
        """Deletes a document. Returns whether it was there."""
        removal: DocumentRemoval = {"key": key}
        if expected_version is not None:
            removal["expected_version"] = expected_version
        written = await self.write(delete=[removal])
        return written["deleted"] > 0

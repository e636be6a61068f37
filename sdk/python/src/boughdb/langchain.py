"""A key-value store for LangChain.

    from boughdb.langchain import BoughByteStore

    embedder = CacheBackedEmbeddings.from_bytes_store(embeddings, BoughByteStore("http://127.0.0.1:7717"))

The values are documents of one scope of Bough.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.stores import BaseStore

from ._adapters import Clients, UrlOrClient
from ._async.documents import AsyncDocuments
from ._sync.documents import Documents
from ._types import Document

__all__ = ["BoughByteStore"]

# The member of a document that holds the bytes, as text.
_BYTES = "base64"


class BoughByteStore(BaseStore[str, bytes]):
    """Bytes by key, as documents of one scope. Those of one call are written in one durable commit."""

    def __init__(self, url_or_client: UrlOrClient = None, *, scope: str = "langchain") -> None:
        self._clients = Clients(url_or_client)
        self._scope = scope

    @property
    def _documents(self) -> Documents:
        return self._clients.blocking.documents(self._scope)

    @property
    def _async_documents(self) -> AsyncDocuments:
        return self._clients.asynchronous.documents(self._scope)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the values of keys, `None` where there is none."""
        return _in_order(keys, self._documents.get_many(dict.fromkeys(keys)))

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The asynchronous form of `mget`."""
        return _in_order(keys, await self._async_documents.get_many(dict.fromkeys(keys)))

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Sets values."""
        self._documents.write([{"key": key, "value": _encoded(value)} for key, value in dict(key_value_pairs).items()])

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """The asynchronous form of `mset`."""
        pairs = dict(key_value_pairs).items()
        await self._async_documents.write([{"key": key, "value": _encoded(value)} for key, value in pairs])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Deletes values."""
        self._documents.write(delete=[{"key": key} for key in dict.fromkeys(keys)])

    async def amdelete(self, keys: Sequence[str]) -> None:
        """The asynchronous form of `mdelete`."""
        await self._async_documents.write(delete=[{"key": key} for key in dict.fromkeys(keys)])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with a prefix."""
        for document in self._documents.list(prefix=prefix, keys_only=True):
            yield document["key"]

    async def ayield_keys(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, prefix: str | None = None
    ) -> AsyncIterator[str]:
        """The asynchronous form of `yield_keys`."""
        async for document in self._async_documents.list(prefix=prefix, keys_only=True):
            yield document["key"]


def _encoded(value: bytes) -> dict[str, str]:
    return {_BYTES: base64.b64encode(value).decode()}


def _in_order(keys: Sequence[str], documents: list[Document]) -> list[bytes | None]:
    found: dict[str, Any] = {document["key"]: document.get("value") for document in documents}
    return [base64.b64decode(found[key][_BYTES]) if key in found else None for key in keys]

"""LangChain's suite for key-value stores."""

from __future__ import annotations

import secrets

import pytest
from langchain_tests.integration_tests.base_store import BaseStoreAsyncTests, BaseStoreSyncTests

from boughdb.langchain import BoughByteStore

VALUES = (b"foo", b"\x00\xff", b"")


@pytest.fixture
def anyio_backend() -> str:
    """The framework runs on asyncio alone."""
    return "asyncio"


class TestBoughByteStore(BaseStoreSyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, url: str) -> BoughByteStore:
        return BoughByteStore(url, scope=secrets.token_hex(4))

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return VALUES


@pytest.mark.anyio
class TestAsyncBoughByteStore(BaseStoreAsyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, url: str) -> BoughByteStore:
        return BoughByteStore(url, scope=secrets.token_hex(4))

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return VALUES

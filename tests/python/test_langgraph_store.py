"""What LangGraph's store promises beside its suite: the same results as the framework's own store in memory."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from boughdb import Bough
from boughdb.langgraph import BoughStore


@pytest.fixture
def anyio_backend() -> str:
    """The framework runs on asyncio alone."""
    return "asyncio"


def filled(store: BaseStore) -> BaseStore:
    store.put(
        ("users", "alice"), "prefs", {"theme": "dark", "level": 3, "tags": ["a", "b"], "home": {"city": "Oslo", "floor": 2}}
    )
    store.put(("users", "bob"), "prefs", {"theme": "light", "level": 1, "tags": [], "home": {"city": "Rome", "floor": 1}})
    store.put(("users", "bob"), "notes", {"theme": "dark", "level": 7, "tags": ["a"], "home": None})
    store.put(("docs", "a_%/b"), "x/y//z", {"theme": "dark", "level": 5, "tags": ["b", "a"], "home": {"city": "Oslo"}})
    return store


def both(url: str) -> tuple[BaseStore, BaseStore]:
    return filled(InMemoryStore()), filled(BoughStore(url, scope=secrets.token_hex(4)))


def plain(result: Any) -> Any:
    """What a program can compare of a result, in one order."""
    if isinstance(result, list):
        return sorted((plain(item) for item in result), key=str)
    return (result.namespace, result.key, result.value) if hasattr(result, "namespace") else result


@pytest.mark.parametrize(
    "condition",
    [
        {"theme": "dark"},
        {"theme": "dark", "level": {"$gte": 5}},
        {"level": {"$gt": 1, "$lt": 7}},
        {"level": {"$ne": 3}},
        {"level": {"$lte": 1}},
        {"theme": {"$eq": "light"}},
        {"tags": ["a", "b"]},
        {"home": {"city": "Oslo"}},
        {"home": {"floor": 2}},
        {"missing": None},
        {"theme": "none"},
    ],
)
def test_a_search_finds_what_the_store_in_memory_finds(url: str, condition: dict[str, Any]) -> None:
    expected, found = (plain(store.search((), filter=condition)) for store in both(url))
    assert found == expected


def test_a_batch_of_everything_has_the_same_results(url: str) -> None:
    results = []
    for store in both(url):
        done = store.batch(
            [
                PutOp(("users", "bob"), "notes", None),
                GetOp(("users", "bob"), "notes"),
                GetOp(("docs", "a_%/b"), "x/y//z"),
                GetOp(("users",), "notes"),
                SearchOp(("users", "bob")),
                SearchOp((), limit=2, offset=3),
                ListNamespacesOp((MatchCondition("prefix", ("users", "*")),)),
                ListNamespacesOp((MatchCondition("suffix", ("bob",)),), limit=1),
                ListNamespacesOp(max_depth=1),
                PutOp(("new",), "a", {"n": 1}),
                PutOp(("new",), "a", {"n": 2}),
            ]
        )
        done[5] = len(done[5])
        results.append([plain(one) for one in done])
        assert store.get(("users", "bob"), "notes") is None
        assert plain(store.get(("new",), "a")) == (("new",), "a", {"n": 2})
    assert results[0] == results[1]


def test_an_item_keeps_when_it_was_made_and_is_a_document(url: str, bough: Bough) -> None:
    store = BoughStore(bough, scope="kept")
    store.put(("a", "b"), "k", {"n": 1})
    first = store.get(("a", "b"), "k")
    store.put(("a", "b"), "k", {"n": 2})
    second = store.get(("a", "b"), "k")
    assert first is not None and second is not None
    assert second.created_at == first.created_at <= second.updated_at
    assert [document["key"] for document in bough.documents("kept").list()] == ["a/b//k"]
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=5)


def test_many_items_are_read_over_pages(url: str) -> None:
    store = BoughStore(url, scope=secrets.token_hex(4))
    store.batch([PutOp(("many", f"{number % 7}"), f"{number:03}", {"n": number}) for number in range(120)])
    assert len(store.search(("many",), limit=1000)) == 120
    assert len(store.search(("many",), filter={"n": {"$gte": 110}}, limit=1000)) == 10
    assert len(store.list_namespaces(prefix=("many",))) == 7
    found = store.batch([GetOp(("many", f"{number % 7}"), f"{number:03}") for number in range(130)])
    assert [item is None for item in found] == [False] * 120 + [True] * 10


@pytest.mark.anyio
async def test_blocking_and_asynchronous_calls_share_items(url: str) -> None:
    store = BoughStore(url, scope=secrets.token_hex(4))
    await store.aput(("a",), "k", {"n": 1})
    assert plain(store.get(("a",), "k")) == (("a",), "k", {"n": 1})
    assert [item.key for item in await store.asearch(("a",))] == ["k"]
    assert await store.alist_namespaces() == [("a",)]
    await store.adelete(("a",), "k")
    assert await store.aget(("a",), "k") is None

"""Documents by key: put, compared, listed, deleted, and stored once however often a request is sent."""

from __future__ import annotations

import secrets

import pytest

from boughdb import AsyncBough, Bough, DocumentConflict, InvalidRequest


def new_scope() -> str:
    return f"scope-{secrets.token_hex(4)}"


@pytest.mark.parametrize("key", ["a", "a/b", ".", "..", "a,b", "a b?c#d", "ünïcode", "%2F", "a//b"])
def test_keys_of_any_spelling_are_found_again(bough: Bough, key: str) -> None:
    documents = bough.documents(new_scope())
    assert documents.get(key) is None
    version = documents.put(key, {"n": 1})
    found = documents.get(key)
    assert found is not None
    assert (found["key"], found["version"], found.get("value")) == (key, version, {"n": 1})
    assert [one["key"] for one in documents.get_many(["x", key])] == [key]
    assert [one["key"] for one in documents.list(prefix=key)] == [key]
    assert documents.delete(key)
    assert not documents.delete(key)
    assert documents.get(key) is None


def test_a_value_may_be_null(bough: Bough) -> None:
    documents = bough.documents(new_scope())
    documents.put("nothing", None)
    found = documents.get("nothing")
    assert found is not None and found["value"] is None


def test_versions_are_compared(bough: Bough) -> None:
    documents = bough.documents(new_scope())
    first = documents.put("a", 1, expected_version=0)
    with pytest.raises(DocumentConflict) as conflict:
        documents.put("a", 2, expected_version=0)
    assert (conflict.value.key, conflict.value.version) == ("a", first)
    second = documents.put("a", 2, expected_version=first)
    with pytest.raises(DocumentConflict):
        documents.delete("a", expected_version=first)
    assert documents.delete("a", expected_version=second)
    with pytest.raises(DocumentConflict) as gone:
        documents.put("a", 3, expected_version=second)
    assert gone.value.version == 0


def test_a_batch_is_all_or_none(bough: Bough) -> None:
    documents = bough.documents(new_scope())
    with pytest.raises(DocumentConflict):
        documents.write([{"key": "a", "value": 1}, {"key": "b", "value": 2, "expected_version": 7}])
    assert list(documents.list()) == []
    written = documents.write([{"key": "a", "value": 1}, {"key": "b", "value": 2}])
    assert [one["version"] for one in written["documents"]] == [1, 2]
    assert documents.write(delete=[{"key": "a"}, {"key": "x"}])["deleted"] == 1
    with pytest.raises(InvalidRequest):
        documents.put("", 1)


def test_lists_are_read_page_by_page_and_leave_out_values(bough: Bough) -> None:
    documents = bough.documents(new_scope())
    documents.write([{"key": f"k{number}", "value": number} for number in range(7)])
    assert [one.get("value") for one in documents.list(page_size=3)] == list(range(7))
    assert all("value" not in one for one in documents.list(keys_only=True))
    assert [one["key"] for one in documents.get_many(f"k{number}" for number in range(1200))] == [f"k{n}" for n in range(7)]


def test_a_put_whose_answer_is_lost_is_stored_once(lossy: Bough) -> None:
    documents = lossy.documents(new_scope())
    assert documents.put("a", 1, expected_version=0) == 1
    assert documents.put("a", 2, expected_version=1) == 2


@pytest.mark.anyio
async def test_the_asynchronous_client_does_the_same(url: str) -> None:
    async with AsyncBough(url) as bough:
        documents = bough.documents(new_scope())
        await documents.put("a", 1)
        assert [one["key"] async for one in documents.list()] == ["a"]
        found = await documents.get("a")
        assert found is not None and found.get("value") == 1
        assert await documents.delete("a")

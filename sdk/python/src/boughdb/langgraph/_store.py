"""The store of LangGraph: long-term memory that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from .._adapters import Clients, UrlOrClient
from .._operations import Call, Operation, run, run_async
from .._requests import new_key, path
from .._types import Document

Namespace = tuple[str, ...]


class BoughStore(BaseStore):
    """Keeps the items of LangGraph's store in Bough, as documents by key of one scope.

        graph = builder.compile(checkpointer=BoughSaver(url), store=BoughStore(url))

    The operations of one batch see what was there before it; what they put and delete is one durable commit. Searching compares
    values and namespaces and gives items in the order of their keys. There are no vectors: a `query` changes nothing.
    """

    supports_ttl = False

    def __init__(self, url_or_client: UrlOrClient = None, *, scope: str = "langgraph") -> None:
        self._clients = Clients(url_or_client)
        self._scope = scope

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Does several operations."""
        return run(self._batch(list(ops)), self._clients.blocking)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The asynchronous form of `batch`."""
        return await run_async(self._batch(list(ops)), self._clients.asynchronous)

    def _batch(self, ops: list[Op]) -> Operation[list[Result]]:
        found = yield from self._get([op for op in ops if isinstance(op, GetOp)])
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                result = found.get(_key(op.namespace, op.key))
            elif isinstance(op, SearchOp):
                result = yield from self._search(op)
            elif isinstance(op, ListNamespacesOp):
                result = yield from self._namespaces(op)
            else:
                # Of several for one item, the last one counts.
                puts[_key(op.namespace, op.key)] = op
            results.append(result)
        yield from self._write(puts)
        return results

    def _get(self, ops: list[GetOp]) -> Operation[dict[str, Item]]:
        keys = list(dict.fromkeys(_key(op.namespace, op.key) for op in ops))
        documents: list[Document] = []
        sent: dict[str, Any] = {"scope": self._scope, "keys": keys}
        while keys:
            page = yield Call("POST", path("call", "session::kv::list"), body=sent)
            documents.extend(page["documents"])
            if page.get("next_cursor") is None:
                break
            sent = {**sent, "cursor": page["next_cursor"]}
        return {document["key"]: Item(**_item(document)) for document in documents}

    def _search(self, op: SearchOp) -> Operation[list[SearchItem]]:
        wanted = op.filter or {}
        found: list[SearchItem] = []
        cursor: str | None = None
        while len(found) < op.offset + op.limit:
            params = {"prefix": _prefix(op.namespace_prefix), "cursor": cursor}
            page = yield Call("GET", path("kv", self._scope), params)
            for document in cast("list[Document]", page["documents"]):
                value: Any = document.get("value")
                if all(_matches(value.get(name), condition) for name, condition in wanted.items()):
                    found.append(SearchItem(**_item(document)))
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return found[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> Operation[list[Namespace]]:
        conditions = op.match_conditions or ()
        prefixes = [_literal(condition.path) for condition in conditions if condition.match_type == "prefix"]
        found: set[Namespace] = set()
        cursor: str | None = None
        while True:
            params = {"prefix": _prefix(max(prefixes, key=len, default=())), "keys_only": True, "cursor": cursor}
            page = yield Call("GET", path("kv", self._scope), params)
            found.update(_parts(document["key"])[0] for document in page["documents"])
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        matching = {namespace[: op.max_depth] for namespace in found if all(_fits(one, namespace) for one in conditions)}
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _write(self, puts: dict[str, PutOp]) -> Operation[None]:
        if not puts:
            return
        put = [{"key": key, "value": op.value} for key, op in puts.items() if op.value is not None]
        delete = [{"key": key} for key, op in puts.items() if op.value is None]
        yield Call("POST", path("kv", self._scope), None, {"put": put, "delete": delete}, new_key())


# The key of a document is the labels of its namespace, each with a slash behind it, another slash and the item's key. So the
# items of a namespace, and of all namespaces below it, are listed by a prefix.


def _prefix(namespace: Namespace) -> str:
    return "".join(f"{_escaped(label)}/" for label in namespace)


def _key(namespace: Namespace, key: str) -> str:
    return f"{_prefix(namespace)}/{_escaped(str(key))}"


def _parts(document_key: str) -> tuple[Namespace, str]:
    labels, _, key = document_key.partition("//")
    return tuple(map(_unescaped, labels.split("/"))), _unescaped(key)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F")


def _unescaped(text: str) -> str:
    return text.replace("%2F", "/").replace("%25", "%")


def _item(document: Document) -> dict[str, Any]:
    namespace, key = _parts(document["key"])
    return {
        "namespace": namespace,
        "key": key,
        "value": document.get("value"),
        "created_at": _time(document["created_at"]),
        "updated_at": _time(document["updated_at"]),
    }


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=timezone.utc)


def _literal(path: Iterable[str]) -> Namespace:
    """The labels of a condition before the first wildcard."""
    labels: list[str] = []
    for label in path:
        if label == "*":
            break
        labels.append(label)
    return tuple(labels)


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    wanted = tuple(condition.path)
    part = namespace[: len(wanted)] if condition.match_type == "prefix" else namespace[len(namespace) - len(wanted) :]
    return len(part) == len(wanted) and all(want in ("*", label) for want, label in zip(wanted, part, strict=True))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: value == other,
    "$ne": lambda value, other: value != other,
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


def _matches(value: Any, condition: Any) -> bool:
    """Whether a value is as a filter asks: equal, or as its operators say, member by member and item by item."""
    if isinstance(condition, Mapping):
        members = cast("Mapping[str, Any]", condition)
        if any(name.startswith("$") for name in members):
            return all(_compared(name, value, other) for name, other in members.items())
        if not isinstance(value, Mapping):
            return False
        inside = cast("Mapping[str, Any]", value)
        return all(_matches(inside.get(name), other) for name, other in members.items())
    if isinstance(condition, (list, tuple)) and isinstance(value, (list, tuple)):
        wanted, items = cast("list[Any]", condition), cast("list[Any]", value)
        return len(wanted) == len(items) and all(map(_matches, items, wanted))
    return value == condition


def _compared(operator: str, value: Any, other: Any) -> bool:
    if operator not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {operator}")
    return _COMPARISONS[operator](value, other)

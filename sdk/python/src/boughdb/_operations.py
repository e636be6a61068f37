"""Work that a blocking and an asynchronous client do alike.

An operation is a generator: it yields the calls that it wants made, is sent their answers, and returns its result. So the
rules of an adapter are written once.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ._async.client import AsyncBough
from ._errors import BoughError
from ._sync.client import Bough

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request of the API."""

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None
    key: str | None = None


Operation = Generator[Call, Any, T]


def run(operation: Operation[T], client: Bough) -> T:
    """Does an operation with a blocking client."""
    try:
        call = next(operation)
        while True:
            try:
                answer = client.send(call.method, call.path, params=call.params, body=call.body, key=call.key)
            except BoughError as error:
                call = operation.throw(error)
            else:
                call = operation.send(answer)
    except StopIteration as done:
        return done.value


async def run_async(operation: Operation[T], client: AsyncBough) -> T:
    """Does an operation with an asynchronous client."""
    try:
        call = next(operation)
        while True:
            try:
                answer = await client.send(call.method, call.path, params=call.params, body=call.body, key=call.key)
            except BoughError as error:
                call = operation.throw(error)
            else:
                call = operation.send(answer)
    except StopIteration as done:
        return done.value

# Made from ../_async/http.py by tools/make_sync.py; change it there.
"""The one transport: sends requests, repeats them where that is safe, and turns refusals into errors."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from .._errors import ApiError, ConnectionFailed, error_of
from .._requests import QueryValue, Retries, query, to_json
from .._runtime_sync import sleep

# The server says at least this often that a stream lives, in seconds; a silent one is dead.
_STREAM_SILENCE = 60.0


class Http:
    """Sends requests of the API over one pool of connections."""

    def __init__(self, client: httpx.Client, retries: Retries) -> None:
        self._client = client
        self.retries = retries

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, QueryValue] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Sends a request and returns the JSON of the answer.

        The request may reach the server more than once, so it must be one that can be repeated: a read, a write with ids or
        preconditions of its own, or one with an idempotency `key`.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(method, path, params, body, key, headers)
            except httpx.TransportError as error:
                if attempt >= self.retries.attempts:
                    raise ConnectionFailed(f"{method} {path}: {_words(error)}") from error
                pause = self.retries.pause(attempt)
            except ApiError as error:
                error.attempts = attempt
                if attempt >= self.retries.attempts or not error.is_transient:
                    raise
                pause = self.retries.pause(attempt, error.retry_after)
            sleep(pause)

    def call_once(self, method: str, path: str, *, body: Mapping[str, Any]) -> Any:
        """Sends a request that must not be repeated as it is; who sends it decides what to do when it fails."""
        try:
            return self._once(method, path, None, body, None, None)
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{method} {path}: {_words(error)}") from error

    def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, QueryValue] | None,
        body: Mapping[str, Any] | None,
        key: str | None,
        headers: Mapping[str, str] | None,
    ) -> Any:
        sent = dict(headers or {})
        if key is not None:
            sent["Idempotency-Key"] = key
        content = None
        if body is not None:
            content = to_json(body)
            sent["Content-Type"] = "application/json"
        pairs = query(params or {})
        response = self._client.request(method, path, params=pairs, content=content, headers=sent)
        if response.is_error:
            raise error_of(response)
        return response.json() if response.content else None

    def pages(self, path: str, member: str, params: Mapping[str, QueryValue]) -> Iterator[Any]:
        """The items of a list, page after page, each page read when it is needed."""
        cursor: str | None = None
        while True:
            page = self.call("GET", path, params={**params, "cursor": cursor})
            for item in page[member]:
                yield item
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    @contextmanager
    def stream(self, path: str, params: Mapping[str, QueryValue]) -> Generator[Iterator[bytes], None, None]:
        """Opens a stream of server-sent events once; who reads it decides about reconnecting."""
        timeout = httpx.Timeout(self._client.timeout.connect, read=_STREAM_SILENCE)
        headers = {"Accept": "text/event-stream"}
        request = self._client.stream("GET", path, params=query(params), headers=headers, timeout=timeout)
        with request as response:
            if response.is_error:
                response.read()
                raise error_of(response)
            yield response.iter_bytes()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def _words(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__

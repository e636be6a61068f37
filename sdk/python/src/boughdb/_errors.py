"""Errors, by what a program can do about them."""

from __future__ import annotations

from typing import Any, cast

import httpx

# Statuses of requests that may succeed when they are sent again as they are.
_TRANSIENT_STATUSES = frozenset({423, 429, 502, 503, 504})


class BoughError(Exception):
    """The base of every error that this package raises by itself."""


class ConnectionFailed(BoughError):
    """The server could not be reached, or the connection broke and repeating did not help."""


class StartFailed(BoughError):
    """`Bough.local` could not start the program `bough`."""


class ApiError(BoughError):
    """The server refused a request.

    `code` is stable and meant for programs, such as `session/not_found`; `detail` and `hint` are for people. `attempts` says how
    often the request was sent: an earlier attempt may have been done and its answer lost.
    """

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code: str = str(problem.get("code", f"http/{status}"))
        self.detail: str = str(problem.get("detail", problem.get("title", "")))
        self.hint: str = str(problem.get("hint", ""))
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        self.data: dict[str, Any] = problem.get("data") or {}
        self.retry_after = retry_after
        self.attempts = 1
        super().__init__(" ".join(part for part in (f"{self.code}: {self.detail}.", self.hint) if part))

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed when it is sent again."""
        return self.status in _TRANSIENT_STATUSES


class InvalidRequest(ApiError):
    """The request is wrong as it is: 400, 413, 415 and 422."""


class Forbidden(ApiError):
    """The token is missing, unknown, or does not allow this: 401 and 403."""


class NotFound(ApiError):
    """There is no such session, entry or document: 404."""


class Conflict(ApiError):
    """Something changed since the caller looked: 409 and 412."""


class LeafConflict(Conflict):
    """The active leaf is not the one that `expected_leaf` named; `active_leaf` is what it is now."""

    @property
    def active_leaf(self) -> str | None:
        """The entry at the end of the active path, or `None` for a session without entries."""
        return self.data.get("active_leaf") or None


class DocumentConflict(Conflict):
    """A document does not have the version that `expected_version` named; `version` is what it has now."""

    @property
    def key(self) -> str:
        """The key of the document."""
        return str(self.data.get("key", ""))

    @property
    def version(self) -> int:
        """Its version, or 0 when there is no such document."""
        return int(self.data.get("version", 0))


class Unavailable(ApiError):
    """The server is too busy, starts, or another process holds the session: 423, 429, 502, 503 and 504."""


_BY_CODE: dict[str, type[ApiError]] = {
    "session/leaf_conflict": LeafConflict,
    "session/document_conflict": DocumentConflict,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    **dict.fromkeys(_TRANSIENT_STATUSES, Unavailable),
}


def error_of(response: httpx.Response) -> ApiError:
    """Returns the error that a response describes. The response must have been read."""
    problem = _problem(response)
    kind = _BY_CODE.get(str(problem.get("code")), _BY_STATUS.get(response.status_code, ApiError))
    return kind(response.status_code, problem, _seconds(response.headers.get("retry-after")))


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return cast("dict[str, Any]", body)
    return {"title": response.reason_phrase}


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None

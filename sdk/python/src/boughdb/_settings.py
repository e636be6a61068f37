"""What a client was made with, so that a twin can be made of it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ._local import LocalServer
from ._requests import Retries

DEFAULT_URL = "http://127.0.0.1:7717"
# How many seconds a request may take.
DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True)
class Settings:
    """Where the server is and how it is asked."""

    url: str
    token: str | None
    timeout: float
    retries: Retries
    server: LocalServer | None = None

    @staticmethod
    def of(
        url: str | None, token: str | None = None, timeout: float = DEFAULT_TIMEOUT, retries: Retries | None = None
    ) -> Settings:
        """Settings with the defaults of the environment."""
        url = (url or os.environ.get("BOUGH_SERVER") or DEFAULT_URL).rstrip("/")
        return Settings(url, token or os.environ.get("BOUGH_TOKEN"), timeout, retries or Retries())

    @staticmethod
    def of_server(server: LocalServer, timeout: float, retries: Retries | None) -> Settings:
        """Settings of a client of a local server, which needs no token."""
        return Settings("http://localhost", None, timeout, retries or Retries(), server)

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token and self.server is None else {}

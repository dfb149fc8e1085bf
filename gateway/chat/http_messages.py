"""Requests and responses, the same for every carrier. Pure."""

from __future__ import annotations

import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.sse import COMMENT
from webhooks_core.errors import PayloadTooLargeError
from webhooks_core.web.parsers import is_over

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
# The extension of ASGI by which a server takes a status, the lines of a head and a body at once.
WRITE = "signpost.write"
MAX_BODY_BYTES = 20 * 1024 * 1024
JSON = {"Content-Type": "application/json"}
EVENT_STREAM = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class ClientGoneError(Exception):
    """The client left before its request was complete."""


@dataclass(slots=True)
class ChatRequest:
    """One request; header names are lower case, repeated ones are joined with a comma.

    `read` returns the body. Raises ClientGoneError, PayloadTooLargeError.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    peer: str
    read: Callable[[], Awaitable[bytes]]
    query: str = ""
    request_id: str = field(init=False)

    def __post_init__(self) -> None:
        given = self.headers.get("x-request-id", "")
        is_valid = REQUEST_ID.fullmatch(given)
        self.request_id = given if is_valid else _new_id()

    @property
    def is_json(self) -> bool:
        """True if the Content-Type is JSON or missing."""
        header = self.headers.get("content-type", "")
        if header == "application/json":
            return True
        media_type = header.partition(";")[0].strip().lower()
        return media_type in {"", "application/json"} or media_type.endswith("+json")


def _new_id() -> str:
    """Return an id that is unique, not secret, and begins with the time.

    So the index of the requests grows at its end, not all over it.
    """
    return f"{time.time_ns() >> 20:012x}{random.getrandbits(80):020x}"


def check_length(declared: str) -> None:
    """Raise PayloadTooLargeError for a Content-Length above the limit."""
    if is_over(declared, MAX_BODY_BYTES):
        raise PayloadTooLargeError


def join_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return ASGI's headers by name, as WSGI would give them."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


@dataclass(slots=True)
class ChatResponse:
    """A response. A stream has begun with `body`; `rest` yields what follows.

    The caller that gets a response closes `rest` in every case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    rest: AsyncGenerator[bytes] | None = None
    keep_alive: bytes = COMMENT  # what a silent stream sends

    @classmethod
    def json(
        cls, status: int, value: Any, headers: Mapping[str, str] | None = None
    ) -> ChatResponse:
        """Return a JSON response; bytes are JSON already."""
        body = value if isinstance(value, bytes) else json.dumps(value)
        return cls(status, {**JSON, **headers} if headers else JSON, body)

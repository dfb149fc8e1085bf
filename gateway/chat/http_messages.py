"""What comes in and goes out over HTTP, the same under ASGI and in a Django view. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway import trace_ids
from gateway.errors import PayloadTooLargeError

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
MAX_BODY_BYTES = 20 * 1024 * 1024

Headers = Iterable[tuple[bytes, bytes]]


class ClientGoneError(Exception):
    """The client went away before its request was complete."""


def new_id() -> str:
    """Return a new request id: unique, not secret, and without a system call."""
    return f"{random.getrandbits(128):032x}"


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
    request_id: str = field(init=False)

    def __post_init__(self) -> None:
        given = self.headers.get("x-request-id", "")
        self.request_id = given if REQUEST_ID.fullmatch(given) else new_id()

    @property
    def identity(self) -> dict[str, Any]:
        """The arguments of gateway.authentication.authenticate()."""
        return {
            "authorization": self.headers.get("authorization"),
            "tenant": self.headers.get("x-tenant-id"),
            "principal": self.headers.get("x-principal-id"),
            "peer": self.peer,
            "forwarded": any(
                name == "forwarded" or name.startswith("x-forwarded-")
                for name in self.headers
            ),
        }

    @property
    def is_json(self) -> bool:
        """Whether the body claims to be JSON, or nothing."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind in {"", "application/json"} or kind.endswith("+json")

    @property
    def trace_id(self) -> str:
        return trace_ids.trace_id(self.headers.get("traceparent"))


def check_length(declared: str) -> None:
    """Raise PayloadTooLargeError for a Content-Length above the limit."""
    if declared.isdigit() and int(declared[:12]) > MAX_BODY_BYTES:
        raise PayloadTooLargeError


def joined(headers: Headers) -> dict[str, str]:
    """Return ASGI's headers by name, as WSGI would give them."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


EVENT_STREAM = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


@dataclass(slots=True)
class ChatResponse:
    """An answer. A streamed one has begun with `body`; `rest` yields what follows.

    Whoever sends a response closes `rest`, whatever happens.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    rest: AsyncGenerator[bytes] | None = None

    @classmethod
    def json(
        cls, status: int, value: Any, headers: Mapping[str, str] | None = None
    ) -> ChatResponse:
        """Return a JSON answer; bytes are JSON already."""
        body = value if isinstance(value, bytes) else orjson.dumps(value)
        return cls(
            status, {"Content-Type": "application/json", **(headers or {})}, body
        )

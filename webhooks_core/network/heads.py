"""Heads: the bytes of a request and where they go, and the `Retry-After` of a response."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from webhooks_core.network.errors import MalformedUrlError

MAX_DIGITS = 8  # of a Retry-After that is passed on: three years
_WORD = re.compile(r"[!-~]+")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
# What follows the authority, without a fragment (RFC 3986 appendix B).
_AFTER_AUTHORITY = re.compile(r"[^:/?#]+://[^/?#]*([^#]*)", re.DOTALL)


class Origin(NamedTuple):
    """Where requests go that can share a connection; `host` is in its ASCII form."""

    host: str
    port: int
    is_tls: bool


class Target(NamedTuple):
    """Where a URL leads, and the first two lines of a POST to it."""

    origin: Origin
    start: str


@lru_cache(maxsize=4096)
def target_of(url: str) -> Target:
    """Read a URL as the url policy does. Raises MalformedUrlError.

    Path and query are sent as they were given: an escape, a dot segment or an empty query means
    what the receiver says (RFC 3986 section 2.2). Only what would leave its line is escaped.
    """
    try:
        parts = URL(url)
        host, port = parts.raw_host, parts.port
    except (ValueError, IndexError) as error:  # yarl raises both
        raise MalformedUrlError from error
    if not host or not port or parts.scheme not in {"http", "https"}:
        raise MalformedUrlError
    authority, given = parts.host_port_subcomponent or "", _AFTER_AUTHORITY.match(url)
    # A host cannot be escaped.
    if not given or not _WORD.fullmatch(authority):
        raise MalformedUrlError
    path = quote(given[1], safe=_PRINTABLE, errors="replace")
    slash = "" if path.startswith("/") else "/"
    start = f"POST {slash}{path} HTTP/1.1\r\nHost: {authority}\r\n"
    return Target(Origin(host, port, parts.scheme == "https"), start)


def head_of(
    target: Target, headers: Mapping[str, str], defaults: Mapping[str, str], length: int
) -> bytes:
    """Return the head of a POST of `length` bytes; `headers` replace `defaults`.

    Raises ValueError for a header that would not stay in its line.
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    count = len(headers)
    if lines.count("\r") != count or lines.count("\n") != count or "\0" in lines:
        raise ValueError("a header holds a line break or NUL")
    common = _common(tuple(defaults.items()), tuple(headers))
    return f"{target.start}{common}{lines}Content-Length: {length}\r\n\r\n".encode()


@lru_cache(maxsize=1024)
def _common(defaults: tuple[tuple[str, str], ...], replaced: tuple[str, ...]) -> str:
    names = {name.lower() for name in replaced}
    kept = [(name, value) for name, value in defaults if name.lower() not in names]
    return "".join([f"{name}: {value}\r\n" for name, value in kept])


def retry_after(value: str) -> tuple[float, str]:
    """Return a `Retry-After` (RFC 9110 section 10.2.3) in seconds from now, and as text for others.

    An invalid one is 0 and empty. One of more than MAX_DIGITS digits has no text.
    """
    if value.isascii() and value.isdigit():
        return float(value), value if len(value) <= MAX_DIGITS else ""
    try:
        at = parsedate_to_datetime(value)
        # The old forms of a date do not name their zone.
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return 0.0, ""
    return max(0.0, at.timestamp() - time.time()), format_datetime(at, usegmt=True)

"""One connection, and the HTTP/1.1 of one exchange after another on it.

What a server sends is bounded: a head by MAX_HEAD_BYTES, a body by its reader, since at most
HIGH_BYTES wait to be read. A response counts as soon as its head is complete, whatever becomes of
its body. A malformed head is a failure.

A connection can serve another request after a complete, ordinary response alone: one that was read
to its end, to a request that the server has taken, on a connection that neither side closes and on
which nothing else came.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple, cast
from urllib.parse import quote

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from yarl import URL

from webhooks_core.network.errors import MalformedUrlError, NotHttpError

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


# Of a head, with the informational responses before it. More is not valid HTTP to us.
MAX_HEAD_BYTES = 64 * 1024
HIGH_BYTES = 64 * 1024
# A larger request goes out in parts, while its response may already come.
PART_BYTES = 256 * 1024
# Where requests go, and the owner (profile, name) that they are made for.
Route = tuple[Origin, tuple[str, str]]


class Connection(asyncio.Protocol):
    """A connection; at most one task at a time exchanges a request for a response.

    `status_code` is None until the head of a final response is there: of the 1xx, only 101 is
    final. `first_byte_at` is a time of `time.perf_counter`, 0 if nothing was received. `address` is
    the server's; requests of one `route` alone share the connection.
    """

    __slots__ = (
        "_body",
        "_failure",
        "_head_bytes",
        "_is_full",
        "_is_over",
        "_is_paused",
        "_keeps_alive",
        "_loop",
        "_parser",
        "_transport",
        "_waiter",
        "address",
        "first_byte_at",
        "headers",
        "is_closed",
        "route",
        "status_code",
    )

    _transport: asyncio.Transport
    route: Route

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        self._loop = loop
        self.address = address
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._parser = HttpResponseParser(self)
        # Common clients accept these deviations too.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self.is_closed = self._is_full = False
        self.begin()

    # Called by the task that has the connection.

    def begin(self) -> None:
        """Prepare for an exchange, the first one or the next one of a kept connection."""
        self.status_code: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.first_byte_at = 0.0
        self._body = bytearray()
        self._head_bytes = 0
        self._is_over = self._is_paused = False
        self._keeps_alive = True

    async def exchange(self, head: bytes, body: bytes) -> None:
        """Send a request, and wait for the head of its response. Raises OSError, NotHttpError."""
        try:
            await self._send(head, body)
            while self.status_code is None:
                if self._failure:
                    raise self._failure
                await self._change()
        except BaseException:
            self.abort()
            raise

    async def _send(self, head: bytes, body: bytes) -> None:
        if self.first_byte_at:  # some servers do not wait for a request
            self._keeps_alive = False
        if not self.is_closed:
            # In one write: some receivers answer the first TLS record, before the body is there.
            self._transport.write(head + body[:PART_BYTES])
        for start in range(PART_BYTES, len(body), PART_BYTES):
            while self._is_full and not self._has_ended_early():
                await self._change()
            if self._has_ended_early():
                self._keeps_alive = False  # the server may never read the rest
                return
            self._transport.write(body[start : start + PART_BYTES])

    def _has_ended_early(self) -> bool:
        return self.status_code is not None or self._failure is not None

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end. Raises OSError, NotHttpError."""
        while not self._body:
            if self._is_over:
                return b""
            if self._failure:
                raise self._failure
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            await self._change()
        part = bytes(self._body)
        self._body.clear()
        return part

    async def _change(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    @property
    def has_ended(self) -> bool:
        """Return True if there is nothing more to wait for."""
        return self._is_over or self.is_closed

    @property
    def is_reusable(self) -> bool:
        """Return True if another request can be sent: see above."""
        return (
            self._is_over
            and self._keeps_alive
            and not (self._body or self.is_closed)
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
        )

    def abort(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._transport.abort()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._notify()

    def connection_lost(self, error: Exception | None) -> None:
        if not (error or self._failure) and self._ends_with_connection():
            self._is_over = True
        self._fail(error or ConnectionResetError("the server closed the connection"))
        del self._parser  # it refers to this object

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        is_framed = names & {b"content-length", b"transfer-encoding"}
        return self.status_code is not None and not is_framed

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self.abort()  # bytes without a request
        if self.is_closed:
            return
        self.first_byte_at = self.first_byte_at or time.perf_counter()
        if self.status_code is None:
            room = MAX_HEAD_BYTES - self._head_bytes
            self._head_bytes += len(data)
            self._feed(data[:room])
            data = data[room:]
        if data and self.status_code is None:
            self._fail(NotHttpError("the head is too large"))
        elif data and not self.is_closed:
            self._feed(data)
        if len(self._body) > HIGH_BYTES and not (self._is_over or self._is_paused):
            self._is_paused = True
            self._transport.pause_reading()
        self._notify()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(NotHttpError(str(error)))

    def _fail(self, failure: Exception) -> None:
        """Close the connection; the failure counts unless there was one before."""
        self._failure = self._failure or failure
        self.abort()
        self._notify()

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Called by the parser, within data_received().

    def on_message_begin(self) -> None:
        if self._is_over:
            self._keeps_alive = False  # more than one response to a request
        elif self.status_code is None:  # what came before it is not the final one's
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status_code is None:  # else a trailer, or of another response
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status_code = self._parser.get_status_code()
        if self.status_code is None and (status_code == 101 or status_code >= 200):
            self.status_code = status_code

    def on_body(self, data: bytes) -> None:
        if not self._is_over:
            self._body += data

    def on_message_complete(self) -> None:
        if self.status_code is not None and not self._is_over:
            self._is_over = True
            self._keeps_alive &= self._parser.should_keep_alive()

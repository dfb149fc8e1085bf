"""One connection to a receiver, and the HTTP/1.1 of one exchange after another on it.

What a receiver sends is bounded: by bytes, and by the deadlines of the tasks that wait. A response
counts as soon as its head is complete, whatever becomes of its body. A malformed head is a failure.

A connection can serve another request after a complete, ordinary response alone: a 2xx that was
read to its end, to a request that the receiver has taken, on a connection that neither side closes
and on which nothing else came. Receivers that refuse a request often leave its body unread, although
RFC 9112 section 9.3 forbids it, and would read the next request as its continuation.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from webhooks_core.network.errors import NotHttpError

RESPONSE_BODY_BYTES = 4096  # of a response, kept for people
KEPT_HEADER_BYTES = 4096  # the same of its headers
RECORD_BYTES = 16 * 1024  # the most that a TLS record holds (RFC 8446 section 5.1)
# Of a head, with the informational responses before it. More is not valid HTTP to us.
MAX_HEAD_BYTES = 64 * 1024
# This bounds the reading of a body, which only people look at.
READ_AT_MOST = 16 * 1024


class Connection(asyncio.Protocol):
    """A connection; at most one task at a time exchanges a request for a response.

    `status_code` is None until the head of a final response is there: of the 1xx, only 101 is
    final. `first_byte_at` is a time of `time.perf_counter`, 0 if nothing was received. `address` is
    the receiver's; `headers` are those of the response, as many as KEPT_HEADER_BYTES hold.
    """

    __slots__ = (
        "_awaits_end",
        "_failure",
        "_header_bytes",
        "_is_over",
        "_keeps_alive",
        "_loop",
        "_parser",
        "_read",
        "_transport",
        "_waiter",
        "address",
        "body",
        "first_byte_at",
        "headers",
        "is_closed",
        "retry_after",
        "status_code",
    )

    _transport: asyncio.Transport

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
        self.is_closed = False
        self.begin()

    # Called by the task that has the connection.

    def begin(self) -> None:
        """Prepare for an exchange, the first one or the next one of a kept connection."""
        self.status_code: int | None = None
        self.retry_after = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.first_byte_at = 0.0
        self._read = self._header_bytes = 0
        self._awaits_end = self._is_over = False
        self._keeps_alive = True

    def exchange(
        self, head: bytes, body: bytes, *, is_last: bool = False
    ) -> asyncio.Future[None]:
        """Send a request; the future ends when its response has a status.

        It raises NotHttpError, or an OSError if the connection was closed before. After the last
        request, whose head says so, the connection is not reusable.
        """
        waiter = self._waiter = self._loop.create_future()
        if not self.is_closed:
            # Over TLS each part is a record of its own, and some receivers answer the first one.
            is_large = len(body) > RECORD_BYTES
            self._transport.writelines((head, body) if is_large else (head + body,))
        # Some receivers do not wait for a request.
        if is_last or self.first_byte_at:
            self._keeps_alive = False
        self._notify()
        return waiter

    def read_body(self) -> asyncio.Future[None]:
        """Return a future that ends with the response, or with what is read of it."""
        self._awaits_end = True
        waiter = self._waiter = self._loop.create_future()
        self._notify()
        return waiter

    @property
    def has_ended(self) -> bool:
        """Return True if there is nothing more to read."""
        return self._is_over or self.is_closed

    @property
    def is_reusable(self) -> bool:
        """Return True if another request can be sent: see above."""
        return (
            self._is_over
            and self._keeps_alive
            and 200 <= (self.status_code or 0) < 300
            and not self.is_closed
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

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError())
        del self._parser  # it refers to this object

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self.abort()  # bytes without a request
        if self.is_closed:
            return
        self.first_byte_at = self.first_byte_at or time.perf_counter()
        if self.status_code is None:
            room = MAX_HEAD_BYTES - self._read
            self._feed(data[:room])
            data = data[room:]
        if data and not self.is_closed:
            if self.status_code is None:
                self._fail(NotHttpError())
            else:
                self._feed(data)
        if self.status_code and not self._is_over and self._read > READ_AT_MOST:
            self.abort()
        self._notify()

    def _feed(self, data: bytes) -> None:
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail(NotHttpError())

    def _fail(self, failure: Exception) -> None:
        """Close the connection; the failure counts if there is no status yet."""
        self._failure = self._failure or failure
        self.abort()
        self._notify()

    def _notify(self) -> None:
        """End the wait of a task if there is what it waits for."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self.status_code is not None:
            if not self._awaits_end or self.has_ended:
                waiter.set_result(None)
        elif self._failure:
            waiter.set_exception(self._failure)

    # Called by the parser, within data_received().

    def on_message_begin(self) -> None:
        if self._is_over:
            self._keeps_alive = False  # more than one response to a request
        else:  # what came before it is not the final one's
            self.retry_after, self.headers, self._header_bytes = b"", [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status_code is not None:
            return  # a trailer, or of another response
        if not self.retry_after and name.lower() == b"retry-after":
            self.retry_after = value.strip()
        self._header_bytes += len(name) + len(value)
        if self._header_bytes <= KEPT_HEADER_BYTES:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status_code = self._parser.get_status_code()
        if self.status_code is None and (status_code == 101 or status_code >= 200):
            self.status_code, self._read = status_code, 0

    def on_body(self, data: bytes) -> None:
        if not self._is_over and len(self.body) < RESPONSE_BODY_BYTES:
            self.body += data[: RESPONSE_BODY_BYTES - len(self.body)]

    def on_message_complete(self) -> None:
        if self.status_code is not None and not self._is_over:
            self._is_over = True
            self._keeps_alive &= self._parser.should_keep_alive()

"""One connection to a receiver, and the HTTP/1.1 of one exchange after another on it.

What a receiver sends is bounded: by bytes, by headers, and by the deadlines of the tasks that wait.
The status line decides. A response counts from the end of that line on, whatever follows: headers that
contradict each other, are malformed or never end (RFC 9112 section 6.3), or a broken body.

States of a connection after an exchange; only the first one can serve another request:

- A response was read to its end, and nothing came after it.
- Closed, closing or failed, on either side: nothing can be sent.
- The response has not ended. A deadline or a limit came first, or it ends with the connection: the
  rest would be read as the next response.
- The response says `Connection: close`, or is HTTP/1.0 without `keep-alive`: the receiver closes it.
- The request said `Connection: close`: it was a repeated one.
- Bytes came after the response, or before the request: the next response may belong to another.
- A 204 announces a body (RFC 9110 section 6.4.1 forbids it): the body may still come.
- More than MAX_HINTS responses of 1xx came: reading is paused.
- A part of a large request was not taken when the response came: the receiver may never read it.
- The response is 3xx or 4xx: receivers that refuse a request often leave its body unread, although
  RFC 9112 section 9.3 forbids it, and would read the next request as its continuation.
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import sys
import termios
import time
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from webhooks_core.network.errors import NotHttpError

RESPONSE_BODY_BYTES = 4096  # of a response, kept for people
RECORD_BYTES = 16 * 1024  # the most that a TLS record holds (RFC 8446 section 5.1)
# This bounds the reading of a body, which only people look at.
READ_AT_MOST = 16 * 1024
# Of a response: the size of one header, and their number. More is not valid HTTP to us.
MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 256
KEPT_HEADER_BYTES = 4096  # of a response, kept for people
DELIVERY_CONTROL = b"webhook-delivery"  # kept wherever it is: see dispatch/decisions.py
# What may come that neither ends a header nor belongs to a body.
_MAX_PENDING = 2 * MAX_HEADER_BYTES
# Responses before the final one that are read; more must not keep the event loop busy.
MAX_HINTS = 100
# As the parser reads it (RFC 9112 section 4), with or without the space before an empty reason.
_STATUS_LINE = re.compile(rb"HTTP/(?:0\.9|1\.[01]|2\.0) ([1-9][0-9]{2})(?: [^\r]*)?\r?")
_LINE_BYTES = (
    64  # what is kept of a line whose end has not come: enough to tell its kind
)


class Connection(asyncio.Protocol):
    """A connection; at most one task at a time exchanges a request for a response.

    `status_code` is None until the status line of a final response is there: of the 1xx, only 101 is.
    `first_byte_at` is a time of `time.perf_counter`, 0 if nothing was received. `address` is the
    receiver's; `headers` are those of the response, as many as KEPT_HEADER_BYTES hold, and DELIVERY_CONTROL.
    """

    __slots__ = (
        "_awaits_end",
        "_begun",
        "_failure",
        "_has_head",
        "_header_bytes",
        "_header_count",
        "_hints",
        "_is_in_hint",
        "_is_large",
        "_is_over",
        "_keeps_alive",
        "_line",
        "_loop",
        "_parser",
        "_pending",
        "_read",
        "_reason_bytes",
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
        self._pending = self._read = self._hints = self._begun = 0
        self._header_count = self._header_bytes = self._reason_bytes = 0
        self._awaits_end = self._has_head = self._is_over = False
        self._is_in_hint, self._line = False, b""
        self._is_large = False
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
            self._is_large = len(body) > RECORD_BYTES
            self._transport.writelines(
                (head, body) if self._is_large else (head + body,)
            )
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
        """Return True if another request can be sent: see the states above."""
        return (
            self._is_over
            and self._keeps_alive
            and not self.is_closed
            and not self._transport.is_closing()
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
        self._pending += len(data)
        is_http = True
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            is_http = False
        if self.status_code is None:
            self._read_status_line(data)
        if not is_http or self._is_too_large():
            self._fail(NotHttpError())
        self._notify()

    def _read_status_line(self, data: bytes) -> None:
        """Look for the status line of a final response whose head is incomplete, or refused.

        The parser reports a status with the whole head only, and stops where it refuses one: no
        line after that counts.
        """
        *lines, rest = (self._line + data).split(b"\n")
        self._line = rest[:_LINE_BYTES]
        for line in lines:
            is_empty = line in {b"", b"\r"}
            if self._is_in_hint:
                self._is_in_hint = not is_empty
            elif self._begun and (match := _STATUS_LINE.fullmatch(line)):
                self._begun -= 1
                self._is_in_hint = not is_final(int(match[1]))
                if not self._is_in_hint:
                    self.status_code = int(match[1])
                    return
            elif not is_empty:
                return

    def _is_too_large(self) -> bool:
        """Return True if no more of this response is read."""
        is_large = self._pending > _MAX_PENDING or self._read >= READ_AT_MOST
        return is_large and not self._is_over

    def _fail(self, failure: Exception) -> None:
        """Close the connection; the failure counts if there is no status yet."""
        self._failure = self._failure or failure
        if not self._has_head:
            # How much of a broken head was read depends on its segments.
            self.retry_after = b""
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
        self._pending = self._header_count = self._reason_bytes = 0
        self._begun += 1
        if self._is_over:
            self._keeps_alive = False  # more than one response to a request
        else:  # what came before it is not the final one's
            self.retry_after, self.headers, self._header_bytes = b"", [], 0

    def on_status(self, text: bytes) -> None:
        self._reason_bytes += len(text)
        if self._reason_bytes > _MAX_PENDING:
            self._begun = 0
            raise NotHttpError

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pending = 0
        self._header_count += 1
        size = max(len(name), len(value))
        is_excessive = self._header_count > MAX_HEADERS or size > MAX_HEADER_BYTES
        if is_excessive or b"\0" in value:
            raise NotHttpError
        if self._has_head:
            return  # a trailer, or of another response
        if not self.retry_after and name.lower() == b"retry-after":
            self.retry_after = value.strip()
        self._header_bytes += len(name) + len(value)
        is_kept = self._header_bytes <= KEPT_HEADER_BYTES
        if is_kept or (name.lower() == DELIVERY_CONTROL and len(value) <= _LINE_BYTES):
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status_code = self._parser.get_status_code()
        if not is_final(status_code):
            self._hints += 1
            if self._hints > MAX_HINTS:
                self._keeps_alive = False
                self._transport.pause_reading()  # until the deadline
        elif not self._has_head:
            self.status_code, self._has_head = status_code, True
            is_unread = self._is_large and self._unread_bytes() > 0
            if is_unread or (status_code == 204 and self._announces_body()):
                self._keeps_alive = False

    def _unread_bytes(self) -> int:
        """Return how much of the request the receiver's machine has not taken.

        Over TLS the transport does not say what waits in this process. If something does, then the
        socket is full.
        """
        opened = self._transport.get_extra_info("socket")
        try:
            count = fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # not every system answers this for a socket
            return self._transport.get_write_buffer_size()
        return int.from_bytes(count, sys.byteorder)

    def _announces_body(self) -> bool:
        """Return True unless the headers say that no body follows."""
        framing = {b"content-length", b"transfer-encoding"}
        return self._header_bytes > KEPT_HEADER_BYTES or any(
            name.lower() in framing and value.strip() != b"0"
            for name, value in self.headers
        )

    def on_body(self, data: bytes) -> None:
        self._pending = 0
        self._read += len(data)
        if not self._is_over and len(self.body) < RESPONSE_BODY_BYTES:
            self.body += data[: RESPONSE_BODY_BYTES - len(self.body)]

    def on_message_complete(self) -> None:
        if self._has_head and not self._is_over:
            self._is_over = True
            self._keeps_alive &= self._parser.should_keep_alive()


def is_final(status_code: int) -> bool:
    """Return True unless another response follows: of the 1xx, only 101 is the last one."""
    return status_code == 101 or not 100 <= status_code < 200

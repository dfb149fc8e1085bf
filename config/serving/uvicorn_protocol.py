"""uvicorn's connections, with the parts of HTTP/1.1 that uvicorn leaves out.

uvicorn waits without limit for the rest of a request's head, accepts a head of any size, and
keeps a connection that it closes until the client has read everything. It takes trailer fields
for headers, drops the body of a request that offers an upgrade, accepts transfer codings that it
does not decode, and does not tell the first of several pipelined requests that the client has
left.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

# A client that makes no progress between two checks is disconnected.
CHECK_INTERVAL_S = 60.0
# However slowly it reads a response that is complete, it has this many checks (ten minutes).
MAX_CHECKS = 10
MAX_HEAD_BYTES = 128 * 1024
# The time in which a client that connected before the port closed must begin its first request.
FIRST_REQUEST_S = 2.0

# The parser refuses methods that HTTP and WebDAV do not define; the application refuses the others.
UNKNOWN_METHOD = (
    b"HTTP/1.1 405 Method Not Allowed\r\n"
    b"allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class HttpProtocol(HttpToolsProtocol):
    """One connection. While the application answers a request, its own deadlines apply."""

    _head_bytes = 0  # received since a message or a part of a body
    _is_shut_down = False
    _answered: RequestResponseCycle | None = None  # the others of a pipeline wait
    _last_awaited: tuple[int, object] | None = None
    _checks = 0  # that found the client busy with the same request
    _check_timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._check()

    def connection_lost(self, exc: Exception | None) -> None:
        self._check_timer.cancel()
        super().connection_lost(exc)
        # uvicorn tells only the newest request that the client has left.
        if (answered := self._answered) and not answered.response_complete:
            answered.disconnected = True
            answered.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """Close the connection, but leave a new one the time to send its first request."""
        if self._answered is None and not self._is_shut_down:
            self._is_shut_down = True
            self.loop.call_later(FIRST_REQUEST_S, self.shutdown)
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._head_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserInvalidMethodError:
            self._refuse("The method is unknown.", UNKNOWN_METHOD)
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
        else:
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse("The head of the request is too large.")

    def _feed(self, data: bytes) -> None:
        """Parse; parse a request that offers an upgrade again, without the offer.

        An unsupported upgrade is ignored (RFC 9110 section 7.8), but the parser stops reading
        HTTP after the head. Raises HttpParserError.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        headers = [header for header in self.headers if header[0] != b"upgrade"]
        lines += [b"%s: %s" % header for header in headers]
        return b"\r\n".join((*lines, b"", b""))

    def _refuse(self, reason: str, answer: bytes = b"") -> None:
        """Refuse what arrived, or close the connection after the responses to earlier requests."""
        self.logger.warning(reason)
        if self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()  # its body is what cannot be read
        newest = self.pipeline[0][0] if self.pipeline else self._answered
        if newest is not None and not newest.response_complete and not newest.more_body:
            newest.keep_alive = False
            self.flow.pause_reading()
        elif answer:
            self.transport.write(answer)
            self.transport.close()
        else:
            self.send_400_response(reason)

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body comes a trailer, never a header (RFC 9110 section 6.5.1).
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.scope is not self.scope:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse codings that nothing decodes; TE must not name chunked (RFC 9110 section 10.1.4)."""
        headers = self.headers
        codings = {v.strip().lower() for n, v in headers if n == b"transfer-encoding"}
        is_te_wrong = any(n == b"te" and b"chunked" in v.lower() for n, v in headers)
        is_connect = self.parser.get_method() == b"CONNECT"
        if is_connect or is_te_wrong or codings - {b"chunked"}:
            raise httptools.HttpParserError
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._head_bytes = 0
            super().on_message_complete()

    def _check(self) -> None:
        """Reset the connection of a client without progress since the last check, or too slow."""
        awaited, last = self._awaited(), self._last_awaited
        is_same = bool(awaited and last and awaited[1] is last[1])
        self._checks = self._checks + 1 if is_same else 0
        if is_same and (awaited == last or self._checks >= MAX_CHECKS):
            # Without lingering, the kernel discards the unsent data.
            client = self.transport.get_extra_info("socket")
            no_time = struct.pack("ii", 1, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_time)
            self.transport.abort()
            return
        self._last_awaited = awaited
        self._check_timer = self.loop.call_later(CHECK_INTERVAL_S, self._check)

    def _awaited(self) -> tuple[int, object] | None:
        """Return the number of bytes that the client has to read, and its unfinished request.

        None while the server is to act, or while uvicorn's own timer runs between requests.
        """
        answered = self._answered
        is_over = answered is None or answered.response_complete
        if not is_over and not self.transport.is_closing():
            return None
        unread = self.transport.get_write_buffer_size()
        if unread == 0 and self.timeout_keep_alive_task is not None:
            return None
        return unread, self.scope

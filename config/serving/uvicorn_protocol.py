"""uvicorn's connections, with the parts of HTTP/1.1 that uvicorn leaves out.

uvicorn waits without limit for the rest of a request's head, accepts a head of any size, and
keeps a connection that it closes until the client has read everything. It takes trailer fields
for headers, drops the body of a request that offers an upgrade, refuses methods by a list of
its own, closes the connection of a client that has sent everything but still reads, and does
not tell the first of several pipelined requests that the client has left.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Iterator
from functools import partial
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

# Every response begins with this; its bytes are sent as probes, with these pauses.
BEGINNING = b"HTTP/1.1 "
PROBE_DELAYS_S = (0.1, 1.0, 5.0, 20.0, 60.0, 120.0, 240.0)

# The parser refuses every other method before it reads the path. Such a request is parsed as
# STAND_IN, and the application gets the real method. CONNECT names no path of this site, PRI is
# another protocol.
METHODS = (b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT", b"TRACE")
KNOWN = tuple(method + b" " for method in (*METHODS, b"CONNECT", b"PRI"))
STAND_IN = b"POST"
METHOD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})( ?)")


class RefusedError(Exception):
    """The parser accepts this request, and this server does not."""


class ProbedTransport(asyncio.Transport):
    """The transport of a response whose first bytes may have been sent as probes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._sent = 0

    def probe(self) -> None:
        """Send the next byte with which every response begins."""
        self._transport.write(BEGINNING[self._sent : self._sent + 1])
        self._sent += 1

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._transport.write(data[self._sent :])
        self._sent = 0

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()


class HttpProtocol(HttpToolsProtocol):
    """One connection. While the application answers a request, its own deadlines apply."""

    _head_bytes = 0  # received since a message or a part of a body
    _has_progressed = False
    _is_shut_down = False
    _is_head = True
    _is_between_messages = True  # a method comes next
    _start = b""  # of a method that is not complete
    _answered: RequestResponseCycle | None = None  # the others of a pipeline wait
    _method = b""  # that the parser got as STAND_IN
    _last_awaited: tuple[int, object] | None = None
    _checks = 0  # that found the client busy with the same request
    _check_timer: asyncio.TimerHandle | None = None
    _probe_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._check_timer, self._probe_timer):
            if timer is not None:
                timer.cancel()
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
        is_new = cast("RequestResponseCycle | None", self.cycle) is None
        if is_new and not self._is_shut_down:
            self._is_shut_down = True
            self.loop.call_later(FIRST_REQUEST_S, self.shutdown)
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._is_between_messages:
            data = self._with_known_method(data)
        self._unset_keepalive_if_required()
        self._has_progressed = False
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
            return
        self._head_bytes = 0 if self._has_progressed else self._head_bytes + len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse("The head of the request is too large.")

    def _with_known_method(self, data: bytes) -> bytes:
        """Return the data for the parser; nothing while the method is not complete."""
        if not self._start and data.startswith(KNOWN):
            return data
        data, self._start = (self._start + data).lstrip(b"\r\n"), b""
        match = METHOD.match(data)
        if match is None or data.startswith(KNOWN):
            return data
        method, space = match.groups()
        if not space and match.end() == len(data):
            self._start = data
            return b""
        if not space or method.upper() in METHODS:
            return data
        self._method = method
        return STAND_IN + data[len(method) :]

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

    def _refuse(self, reason: str) -> None:
        """Refuse the data after answering the requests before it; ignore everything after it."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and self.pipeline and cycle.more_body:
            # The request waits for its turn, and so does its refusal.
            self.logger.warning(reason)
            self.pipeline[0] = (cycle, partial(_refusal, reason))
            cycle.more_body = False
        if cycle is None or cycle.response_complete or cycle.more_body:
            self.logger.warning(reason)
            self.send_400_response(reason)
        else:
            cycle.keep_alive = False
            self.flow.pause_reading()

    def on_message_begin(self) -> None:
        self._is_head, self._is_between_messages = True, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body comes a trailer, never a header (RFC 9110 section 6.5.1).
        if self._is_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_head = False
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise RefusedError
            return
        _check_codings(self.headers)
        super().on_headers_complete()
        if self._method:
            self.scope["method"], self._method = self._method.decode(), b""

    def on_body(self, body: bytes) -> None:
        self._has_progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._has_progressed = self._is_between_messages = True
            super().on_message_complete()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection for the response if the client has sent whole requests."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_complete = self._is_between_messages and not self._start
        if cycle is None or cycle.response_complete or not is_complete:
            return False
        cycle.keep_alive = False
        cycle.transport = ProbedTransport(self.transport)
        self._send_probe(cycle.transport, iter(PROBE_DELAYS_S))
        return True

    def _send_probe(self, transport: ProbedTransport, delays: Iterator[float]) -> None:
        """Find out whether a client that sends no more still reads: a closed one resets.

        Only data shows this. So a byte is sent that changes no response: the next one of the
        status line, or a zero before the size of the next chunk.
        """
        cycle = self.cycle
        if not self.pipeline:
            if not cycle.response_started:
                transport.probe()
            elif cycle.chunked_encoding and not cycle.response_complete:
                self.transport.write(b"0")
        if (delay := next(delays, None)) is not None:
            self._probe_timer = self.loop.call_later(
                delay, self._send_probe, transport, delays
            )

    def _schedule_check(self) -> None:
        self._last_awaited = self._awaited()
        self._check_timer = self.loop.call_later(CHECK_INTERVAL_S, self._check)

    def _check(self) -> None:
        """Disconnect a client that has made no progress since the last check, or takes too long."""
        awaited, last = self._awaited(), self._last_awaited
        is_same = bool(awaited and last and awaited[1] is last[1])
        self._checks = self._checks + 1 if is_same else 0
        if is_same and (awaited == last or self._checks >= MAX_CHECKS):
            self._reset()
        else:
            self._schedule_check()

    def _reset(self) -> None:
        """Abort the connection, and have the kernel discard the unsent data."""
        client = self.transport.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _awaited(self) -> tuple[int, object] | None:
        """Return the number of bytes that the client has to read, and its unfinished request.

        None while the server is to act, or while uvicorn's own timer runs between requests.
        """
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_over = cycle is None or cycle.response_complete
        if not is_over and not self.transport.is_closing():
            return None
        unread = self.transport.get_write_buffer_size()
        if unread == 0 and self.timeout_keep_alive_task is not None:
            return None
        return unread, self.scope


async def _refusal(reason: str, _scope: Any, _receive: Any, send: Any) -> None:
    """Answer a pipelined request as send_400_response() does."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(reason)).encode()),
    ]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": reason.encode()})


def _check_codings(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise RefusedError for any transfer coding other than chunked: only that is decoded.

    TE must not name chunked (RFC 9110 section 10.1.4).
    """
    for name, value in headers:
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise RefusedError
        if name == b"te" and b"chunked" in value.lower():
            raise RefusedError

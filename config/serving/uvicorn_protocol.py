"""uvicorn's connections, with what uvicorn leaves out of HTTP/1.1.

uvicorn writes the head of an answer by itself, which costs a system call and wakes the client
for nothing. It waits without an end for the rest of a request's head, takes a head of any size,
and a connection that it closes stays for as long as the client does not read what was sent.
It takes trailer fields for headers, drops the body of a request that offers an upgrade, refuses
methods by a list of its own, and hangs up on a client that has sent everything but still reads.
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

# A client that does nothing of what it is waited for between two looks is cut off.
LOOK_EVERY_S = 60.0
MAX_HEAD_BYTES = 128 * 1024

# What every answer begins with, and after how many seconds the next byte of it is sent ahead.
BEGINNING = b"HTTP/1.1 "
PROBE_DELAYS_S = (0.1, 1.0, 5.0, 20.0, 60.0, 120.0, 240.0)

# The parser refuses every other method before its address is known: the application gets those
# under a name that the parser takes. CONNECT has no address of ours, PRI is another protocol.
METHODS = (b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT", b"TRACE")
KNOWN = tuple(method + b" " for method in (*METHODS, b"CONNECT", b"PRI"))
STAND_IN = b"POST"
METHOD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})( ?)")


class RefusedError(Exception):
    """The parser takes this request, and we do not."""


class BufferedTransport(asyncio.Transport):
    """A transport that holds what is written until more comes, at most to the loop's next turn."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._held = b""
        self._ahead = 0  # bytes of the next answer that are sent

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data:
            return
        if self._ahead:
            data, self._ahead = data[self._ahead :], 0
        if self._held:
            self._transport.writelines((self._held, data))
            self._held = b""
        else:
            self._held = bytes(data)
            self._loop.call_soon(self._release)

    def send_ahead(self) -> None:
        """Send one more byte of what every answer begins with; that answer goes on behind it."""
        byte = BEGINNING[self._ahead : self._ahead + 1]
        if byte:
            self._release()
            self._transport.write(byte)
            self._ahead += 1

    def _release(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def get_write_buffer_size(self) -> int:
        return len(self._held) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        self._release()
        self._transport.close()

    def abort(self) -> None:
        self._held = b""
        self._transport.abort()


class HttpProtocol(HttpToolsProtocol):
    """One connection. While a request is answered, time is the application's business."""

    _head_bytes = 0  # that came since a message or a part of a body
    _has_moved = False
    _is_head = True
    _is_between = True  # two messages, so that a method comes next
    _start = b""  # of a method that is not complete
    _method = b""  # in place of which the parser got STAND_IN
    _seen: tuple[int, object] | None = None
    _timer: asyncio.TimerHandle | None = None
    _probe: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(BufferedTransport(transport, self.loop))
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._probe):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_between:
            data = self._with_known_method(data)
        self._unset_keepalive_if_required()
        self._has_moved = False
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
            return
        self._head_bytes = 0 if self._has_moved else self._head_bytes + len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse("The head of the request is too large.")

    def _with_known_method(self, data: bytes) -> bytes:
        """Return what the parser gets; nothing while a method is not complete."""
        if not self._start and data.startswith(KNOWN):
            return data
        data, self._start = (self._start + data).lstrip(b"\r\n"), b""
        found = METHOD.match(data)
        if found is None or data.startswith(KNOWN):
            return data
        method, space = found.groups()
        if not space and found.end() == len(data):
            self._start = data
            return b""
        if not space or method.upper() in METHODS:
            return data
        self._method = method
        return STAND_IN + data[len(method) :]

    def _feed(self, data: bytes) -> None:
        """Parse; a request that offers an upgrade once more, without the offer.

        An upgrade that is not served is ignored (RFC 9110 section 7.8), but the parser leaves
        HTTP behind the head. Raises HttpParserError.
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
        lines += [b"%s: %s" % it for it in self.headers if it[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def _refuse(self, reason: str) -> None:
        """Refuse what came; the requests before it are answered first, and nothing after it."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and self.pipeline and cycle.more_body:
            # It waits for its turn, and so does its refusal.
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
        self._is_head, self._is_between = True, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes behind the body is a trailer, never a header (RFC 9110 section 6.5.1).
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
        self._has_moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._has_moved = self._is_between = True
            super().on_message_complete()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection for the answer when the client has sent whole requests."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_whole = self._is_between and not self._start
        if cycle is None or cycle.response_complete or not is_whole:
            return False
        cycle.keep_alive = False
        self._send_probe(iter(PROBE_DELAYS_S))
        return True

    def _send_probe(self, delays: Iterator[float]) -> None:
        """Find out whether a client that sends no more still reads: who has gone resets.

        Only data tells. So a byte is sent that changes no answer: the next one of the status
        line, or a zero before the size of the next chunk.
        """
        cycle = self.cycle
        if not self.pipeline:
            if not cycle.response_started:
                cast("BufferedTransport", self.transport).send_ahead()
            elif cycle.chunked_encoding and not cycle.response_complete:
                self.transport.write(b"0")
        if (delay := next(delays, None)) is not None:
            self._probe = self.loop.call_later(delay, self._send_probe, delays)

    def _look_later(self) -> None:
        self._seen = self._awaited()
        self._timer = self.loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        awaited, seen = self._awaited(), self._seen
        if awaited and seen and awaited[0] == seen[0] and awaited[1] is seen[1]:
            self._reset()
        else:
            self._look_later()

    def _reset(self) -> None:
        """Forget the connection, and have the kernel forget what it would still send."""
        client = self.transport.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _awaited(self) -> tuple[int, object] | None:
        """Return what the client is waited for: to read so many bytes, or to go on with a request.

        None when it is not its turn, or when uvicorn's own timer runs, between requests.
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
    """Answer a request that waited behind others as send_400_response() does."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(reason)).encode()),
    ]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": reason.encode()})


def _check_codings(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise RefusedError for a transfer coding but chunked, which alone is decoded here.

    TE must not name chunked (RFC 9110 section 10.1.4).
    """
    for name, value in headers:
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise RefusedError
        if name == b"te" and b"chunked" in value.lower():
            raise RefusedError

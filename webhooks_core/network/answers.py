"""One connection to a server whose answers are read in parts: HTTP/1.1, one exchange after another.

A reader that is slow stops the server: at most HIGH_BYTES wait to be read. Bodies are
decompressed in steps of STEP_BYTES. After a complete answer the connection can serve another request.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from webhooks_core.network.errors import NotHttpError

HIGH_BYTES = 256 * 1024
STEP_BYTES = 64 * 1024
# A larger request goes out in parts, while its answer may already come.
PART_BYTES = 256 * 1024
MAX_HEADERS = 256
MAX_HEADER_BYTES = 64 * 1024
MAX_HINTS = 100  # answers of 1xx before the final one
GZIP = 0x1F
ANY_ZLIB = 32 + zlib.MAX_WBITS  # of gzip or zlib, as the data says


class AnswerConnection(asyncio.Protocol):
    """A connection; at most one task at a time exchanges a request for an answer.

    `status` is 0 until the head of the final answer is there; names of `headers` are lower case,
    and of a repeated one the last counts.
    """

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._waiter: asyncio.Future[None] | None = None
        self._is_full = self.is_closed = False
        self._failure: Exception | None = None
        self._begin()
        self._is_over = True  # there is no request yet

    def _begin(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.has_answered = False  # whether a byte of the answer has come
        self._raw = bytearray()
        self._header_bytes = self._hints = 0
        self._is_over = self._is_final = self._is_paused = False
        self._keeps_alive = True
        self._is_packed = False
        self._decoder: zlib._Decompress | None = None

    # Called by the task that has the connection.

    async def exchange(self, head: bytes, body: bytes) -> None:
        """Send a request, and wait for the head of its answer. Raises OSError, NotHttpError."""
        self._begin()
        if not self._failure:
            self._transport.write(head + body[:PART_BYTES])
        for start in range(PART_BYTES, len(body), PART_BYTES):
            while self._is_full and not (self.status or self._failure):
                await self._change()
            if self.status or self._failure:
                self._keeps_alive = False  # the server may never read the rest
                break
            self._transport.write(body[start : start + PART_BYTES])
        while not self.status:
            if self._failure:
                raise self._failure
            await self._change()

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end. Raises OSError, NotHttpError."""
        while True:
            if self._raw and (part := self._decoded()):
                return part
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            elif self._is_over:
                if self._decoder is not None and not self._decoder.eof:
                    raise NotHttpError("content-encoding: the body is cut")
                return b""
            elif self._failure:
                raise self._failure
            else:
                await self._change()

    def _decoded(self) -> bytes:
        if not self._is_packed:
            part = bytes(self._raw)
            self._raw.clear()
            return part
        if self._decoder is None:
            # Some servers mean deflate without zlib's frame (RFC 9110 section 8.4.1.2).
            is_framed = self._raw[0] == GZIP or self._raw[0] & 15 == zlib.DEFLATED
            self._decoder = zlib.decompressobj(
                ANY_ZLIB if is_framed else -zlib.MAX_WBITS
            )
        try:
            part = self._decoder.decompress(self._raw, STEP_BYTES)
        except zlib.error as error:
            raise NotHttpError(f"content-encoding: {error}") from error
        self._raw = bytearray(self._decoder.unconsumed_tail)
        return part

    async def _change(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_reusable(self) -> bool:
        """Return True if another request can be sent: the answer was read to its end."""
        return (
            self._is_over
            and not self._raw
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

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._notify()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        ends_here = {"content-length", "transfer-encoding"}.isdisjoint(self.headers)
        if not (error or self._failure) and self.status and ends_here:
            self._is_over = True
        self._fail(error or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self._keeps_alive = False
            self.abort()
            return
        self.has_answered = True
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            ours = error.__context__
            is_ours = isinstance(ours, NotHttpError)
            self._fail(ours if is_ours else NotHttpError(str(error)))  # type: ignore[arg-type]
        self._pause_if_full()
        self._notify()

    def _pause_if_full(self) -> None:
        if len(self._raw) > HIGH_BYTES and not (self._is_over or self._is_paused):
            self._is_paused = True
            self._transport.pause_reading()

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self.abort()
        self._notify()

    # Called by the parser, within data_received().

    def on_message_begin(self) -> None:
        if self._is_over:
            self._keeps_alive = False  # more than one answer to a request
        elif not self._is_final:
            self.headers, self._header_bytes = {}, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        is_large = self._header_bytes > MAX_HEADER_BYTES
        if is_large or len(self.headers) > MAX_HEADERS:
            raise NotHttpError("the head is too large")
        if not self._is_final:  # else a trailer
            key = name.decode("latin-1").lower()
            self.headers[key] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._hints += 1
            if self._hints > MAX_HINTS:
                raise NotHttpError("too many answers of 1xx")
        elif not self._is_final:
            self._is_final, self.status = True, status
            match self.headers.get("content-encoding", "identity").lower():
                case "identity" | "":
                    pass
                case "gzip" | "x-gzip" | "deflate":
                    self._is_packed = True
                case other:
                    raise NotHttpError(f"content-encoding: {other[:50]}")

    def on_body(self, data: bytes) -> None:
        if not self._is_over:
            self._raw += data

    def on_message_complete(self) -> None:
        if self._is_final and not self._is_over:
            self._is_over = True
            self._keeps_alive &= self._parser.should_keep_alive()

"""uvicorn's connections, with the parts of HTTP/1.1 that uvicorn leaves out.

uvicorn takes trailers for headers, drops the body of a request that offers an upgrade, accepts
transfer codings that it does not decode, and accepts a head of any size.
"""

from __future__ import annotations

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.chat.http_messages import WRITE

MAX_HEAD_BYTES = 128 * 1024
CHUNKED = b"chunked"


class HttpProtocol(HttpToolsProtocol):
    _head_bytes = 0  # received since a message or a part of a body

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._head_bytes += len(data)
        try:
            while data:
                data = self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        else:
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def _feed(self, data: bytes) -> bytes:
        """Parse; return what another parser reads again: a request that offers an upgrade, without it.

        An unsupported upgrade is ignored (RFC 9110 section 7.8), but the parser stops after the head.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            version = self.parser.get_http_version().encode()
            lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
            lines += [
                b"%s: %s" % each for each in self.headers if each[0] != b"upgrade"
            ]
            self.parser = httptools.HttpRequestParser(self)
            return b"\r\n".join((*lines, b"", data[upgrade.args[0] :]))
        return b""

    def on_headers_complete(self) -> None:
        """Refuse codings that nothing decodes; TE must not name chunked (RFC 9110 section 10.1.4)."""
        for name, value in self.headers:
            is_te_wrong = name == b"te" and CHUNKED in value.lower()
            is_coding = name == b"transfer-encoding"
            if is_te_wrong or (is_coding and value.strip().lower() != CHUNKED):
                raise httptools.HttpParserError
        if self.parser.get_method() == b"CONNECT":
            raise httptools.HttpParserError
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            self.scope["extensions"] = {WRITE: {"write": self.write_at_once}}
            # After the body come trailers, which are no headers (RFC 9110 section 6.5.1).
            self.headers = []

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._head_bytes = 0
            super().on_message_complete()

    def write_at_once(self, scope: Any, status: int, head: bytes, body: bytes) -> bool:
        """Write a response with a body in one write; return False if uvicorn has to.

        `head` has complete lines, with the length of the body. Two writes of uvicorn cost more, and
        wake the client twice.
        """
        cycle = self.cycle
        # The client may have sent the next request already.
        is_plain = (
            cycle.scope is scope and cycle.keep_alive and scope["method"] != "HEAD"
        )
        if not is_plain or cycle.disconnected or self.flow.write_paused:
            return False
        first = [b"%s: %s\r\n" % each for each in cycle.default_headers]
        parts = (STATUS_LINE[status], *first, head, b"\r\n", body)
        self.transport.write(b"".join(parts))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        self.on_response_complete()
        return True

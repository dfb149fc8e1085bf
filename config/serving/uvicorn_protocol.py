"""uvicorn's connections, with the parts of HTTP/1.1 that uvicorn leaves out.

uvicorn takes trailers for headers, drops the body of a request that offers an upgrade, accepts
transfer codings that it does not decode, and accepts a head of any size.
"""

from __future__ import annotations

from functools import partial

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

MAX_HEAD_BYTES = 128 * 1024
# The extension of ASGI by which an application gives a status, the lines of a head and a body at once.
AT_ONCE = "signpost.at_once"


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

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body comes a trailer, never a header (RFC 9110 section 6.5.1).
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.scope is not self.scope:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse codings that nothing decodes; TE must not name chunked (RFC 9110 section 10.1.4)."""
        is_te_wrong = any(b"chunked" in value for value in self._values(b"te"))
        codings = self._values(b"transfer-encoding") - {b"chunked"}
        if codings or is_te_wrong or self.parser.get_method() == b"CONNECT":
            raise httptools.HttpParserError
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            write = partial(write_at_once, self.cycle)
            self.scope["extensions"] = {AT_ONCE: {"write": write}}

    def _values(self, name: bytes) -> set[bytes]:
        return {value.strip().lower() for key, value in self.headers if key == name}

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._head_bytes = 0
            super().on_message_complete()


def write_at_once(
    cycle: RequestResponseCycle, status: int, head: bytes, body: bytes
) -> bool:
    """Write a response with a body in one write; return False if uvicorn has to.

    `head` has complete lines, with the length of the body. Two writes of uvicorn cost more, and
    wake the client twice.
    """
    is_plain = cycle.keep_alive and cycle.scope["method"] != "HEAD"
    if not is_plain or cycle.disconnected or cycle.flow.write_paused:
        return False
    first = [b"%s: %s\r\n" % each for each in cycle.default_headers]
    parts = (STATUS_LINE[status], *first, head, b"\r\n", body)
    cycle.transport.write(b"".join(parts))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True

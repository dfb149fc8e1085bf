"""A small receiver of webhooks for development and demonstrations; not for production traffic."""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from webhooks_core.management.verification import Received

MAX_BODY = 8 * 1024 * 1024
IDLE_S = 60
BODILESS = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


class Receiver(ThreadingHTTPServer):
    """Responds to each POST, after a call of `on_request` with the request and the status.

    The n-th request gets the n-th status; the last one repeats. `on_fault` is called for a request
    that cannot be read. Both are called from many threads, one call at a time.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        *,
        on_request: Callable[[Received, int], None],
        on_fault: Callable[[str], None] = lambda _: None,
        statuses: Sequence[int] = (204,),
        delay_s: float = 0,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.delay_s = delay_s
        self._on_request = on_request
        self._on_fault = on_fault
        self._statuses: Iterator[int] = itertools.chain(
            statuses, itertools.repeat(statuses[-1])
        )
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{name}:{port}"

    def server_bind(self) -> None:
        # HTTPServer resolves the host's name, which may be slow and needs the network.
        socketserver.TCPServer.server_bind(self)

    def accept(self, received: Received) -> int:
        """Report a request; return the status of its response."""
        with self._lock:
            status = next(self._statuses)
            self._on_request(received, status)
        return status

    def report_fault(self, message: str) -> None:
        with self._lock:
            self._on_fault(message)

    def handle_error(self, *_: Any) -> None:
        self.report_fault("a connection was closed too early")


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_POST(self) -> None:
        if (size := self._size()) is None:
            return
        body = self.rfile.read(size)
        received = Received(
            # http.server takes slashes away from the start of `self.path`.
            path=self.requestline.split()[1],
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            at=time.time(),
        )
        status = self.server.accept(received)
        time.sleep(self.server.delay_s)
        self.send_response(status)
        if status not in BODILESS:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def _size(self) -> int | None:
        """Return the length of the body; None if the request was refused for it."""
        text = self.headers.get("Content-Length", "")
        if (
            not (text.isascii() and text.isdigit())
            or "Transfer-Encoding" in self.headers
        ):
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
            return None
        if len(text) > 12 or int(text) > MAX_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return None
        return int(text)

    def send_error(self, code: int, *_: Any) -> None:
        """Refuse a request without repeating any part of it, and close the connection."""
        status = HTTPStatus(code)
        self.server.report_fault(
            f"a request was refused: {status.value} {status.phrase}"
        )
        self.close_connection = True
        # Without a version it is HTTP/0.9, whose responses have no headers.
        self.request_version = self.protocol_version
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def version_string(self) -> str:
        return "signpost"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Log nothing: the base class repeats what was sent."""

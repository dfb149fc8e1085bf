"""A small receiver of webhooks on this machine, for development and demonstrations."""

from __future__ import annotations

import itertools
import socketserver
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from webhooks_core.management.verification import Received

IDLE_S = 60
HOST = "127.0.0.1"


class Receiver(ThreadingHTTPServer):
    """Responds to each POST, after a call of `on_request` with the request and the status.

    The n-th request gets the n-th status; the last one repeats. `on_request` is called from many
    threads. Port 0 is any free one.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        port: int,
        *,
        on_request: Callable[[Received, int], None],
        statuses: Sequence[int] = (204,),
    ) -> None:
        self.on_request = on_request
        self.statuses = itertools.chain(statuses, itertools.repeat(statuses[-1]))
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def server_bind(self) -> None:
        # HTTPServer resolves the host's name, which may be slow and needs the network.
        socketserver.TCPServer.server_bind(self)


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = next(self.server.statuses)
        self.server.on_request(Received(headers, body, time.time()), status)
        self.send_response(status)
        if status not in {204, 304}:  # which have no body
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Log nothing: the caller shows what was received."""

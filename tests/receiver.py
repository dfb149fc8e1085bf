"""A real HTTP receiver on loopback that records what arrives and answers as it is told."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)


class _Server(ThreadingHTTPServer):
    """Its `server_close` ends every connection and waits for its thread."""

    daemon_threads = False

    def __init__(self, address: tuple[str, int], *arguments: Any) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, *arguments)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):  # the client was first
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, *_: Any) -> None:
        """Say nothing: a client that is killed, or is hostile, resets its connections."""


class Receiver:
    """Answers with `statuses` in order, the last one for ever; `delay` seconds late.

    While its `gate` is closed (`clear()`), it answers nothing. `open` requests wait now.
    """

    def __init__(
        self,
        *statuses: int,
        delay: float = 0.0,
        is_open: bool = True,
        host: str = "127.0.0.1",
    ) -> None:
        self.statuses = list(statuses) or [204]
        self.delay = delay
        self.headers: dict[str, str] = {}
        self.answer = b""
        self.requests: list[Received] = []
        self.peak = self.open = 0
        self.gate = threading.Event()
        if is_open:
            self.gate.set()
        self._is_closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server((host, 0), self._handler())
        name = f"[{host}]" if ":" in host else host
        self.origin = f"http://{name}:{self._server.server_port}"

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"{self.origin}/hook"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A response leaves whole: its reader has only a second for the body.
            wbufsize = -1

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = receiver._next(
                    Received(self.path, dict(self.headers.items()), body)
                )
                receiver._is_closing.wait(receiver.delay)
                receiver.gate.wait()
                receiver._done()
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(receiver.answer)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(receiver.answer)

            do_POST = do_GET  # noqa: N815 - the base's name

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _next(self, request: Received) -> int:
        with self._lock:
            self.requests.append(request)
            self.open += 1
            self.peak = max(self.peak, self.open)
            return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]

    def _done(self) -> None:
        with self._lock:
            self.open -= 1

    @contextmanager
    def running(self) -> Iterator["Receiver"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self._is_closing.set()
            self.gate.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def receiver(*statuses: int, **options: Any) -> Any:
    """Return a context manager that runs a Receiver."""
    return Receiver(*statuses, **options).running()

"""A hostile server, and one attempt at it as a dispatcher makes it."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import trustme

from tests.connections import has_read
from tests.running import PATIENCE_S, until
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.deadlines import of_running_loop
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult, OutgoingRequest

Behaviour = Callable[[socket.socket, "Hostile"], None]


@dataclass
class Hostile:
    """A server that answers each connection with a behaviour, until it is told to stop."""

    behave: Behaviour
    tls: ssl.SSLContext | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    accepted: int = 0
    requests: int = 0
    heard: int = 0  # requests that have begun to arrive
    sent: int = 0
    port: int = 0
    _connections: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/hook"

    @contextmanager
    def running(self) -> Iterator[Self]:
        threads: list[threading.Thread] = []
        self.stopped.clear()  # it may run again, at the same port
        with socket.create_server(("127.0.0.1", self.port), backlog=50) as server:
            self.port = server.getsockname()[1]
            server.settimeout(0.02)
            accepting = threading.Thread(target=self._accept, args=(server, threads))
            accepting.start()
            try:
                yield self
            finally:
                self.stopped.set()
                accepting.join()
                for connection in self._connections:
                    with suppress(OSError):  # it has ended already
                        connection.shutdown(socket.SHUT_RDWR)
                for thread in threads:
                    thread.join()

    def _accept(self, server: socket.socket, threads: list[threading.Thread]) -> None:
        while not self.stopped.is_set():
            with suppress(TimeoutError):
                connection, _ = server.accept()
                self.accepted += 1
                self._connections.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,))
                thread.start()
                threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        with suppress(OSError), connection:
            if self.tls:
                with self.tls.wrap_socket(connection, server_side=True) as secured:
                    self.behave(secured, self)
            else:
                self.behave(connection, self)


def server_side(issued: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return context


def receive(connection: socket.socket) -> bytes:
    if data := connection.recv(65536):
        return data
    raise ConnectionError("closed by the client")


def read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += receive(connection)


def reset(connection: socket.socket) -> None:
    """Close with RST in place of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answering(*parts: bytes, then: str = "close") -> Behaviour:
    """Read the request, send bytes, and then close, reset, or wait."""

    def behave(connection: socket.socket, server: Hostile) -> None:
        read_request(connection)
        server.heard += 1
        for part in parts:
            connection.sendall(part)
        if then == "reset":
            # A reset throws away what waits in the other end's kernel.
            until(lambda: has_read(connection), "the client to read")
            reset(connection)
        elif then == "wait":
            receive(connection)

    return behave


def pouring(start: bytes, part: bytes, *, pause: float = 0) -> Behaviour:
    """Read the request, send bytes, and then some again and again until the test ends."""
    begin = answering(start)

    def behave(connection: socket.socket, server: Hostile) -> None:
        begin(connection, server)
        while not server.stopped.is_set():
            server.sent += connection.send(part)
            time.sleep(pause)

    return behave


def dripping(start: bytes, part: bytes) -> Behaviour:
    return pouring(start, part, pause=0.03)


def resets_at_once(connection: socket.socket, _: Hostile) -> None:
    reset(connection)


def resets_while_it_reads(connection: socket.socket, _: Hostile) -> None:
    receive(connection)
    reset(connection)


def closes_at_once(connection: socket.socket, _: Hostile) -> None:
    connection.close()


def says_nothing(connection: socket.socket, server: Hostile) -> None:
    read_request(connection)
    server.heard += 1
    server.stopped.wait(PATIENCE_S)


def never_reads(connection: socket.socket, server: Hostile) -> None:
    connection.recv(1, socket.MSG_PEEK)
    server.heard += 1
    server.stopped.wait(PATIENCE_S)


def answers_unread(connection: socket.socket, server: Hostile) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    server.stopped.wait(PATIENCE_S)


def answers_once(connection: socket.socket, server: Hostile) -> None:
    """Answer the first request of a connection; read the second one and close."""
    for answer in (b"HTTP/1.1 204 No Content\r\n\r\n", b""):
        read_request(connection)
        server.requests += 1
        connection.sendall(answer)


def post(url: str, **fields: Any) -> AttemptResult:
    """Make one attempt as a dispatcher makes it."""
    with Sender() as sender:
        return send(sender, request_to(url, **fields))


def post_in_vain(url: str, has_come: Callable[[], object]) -> AttemptResult:
    """Make an attempt whose time is over as soon as it has come to a point."""
    with Sender() as sender:
        return send_in_vain(sender, request_to(url), has_come)


def send_in_vain(
    sender: Sender, request: OutgoingRequest, has_come: Callable[[], object]
) -> AttemptResult:
    sender.submit([request])
    until(has_come, "a request")
    pass_time(sender)
    return collected(sender)


def pass_time(sender: Sender) -> None:
    """Let the time of every open attempt be over."""

    def end() -> None:
        for deadline in of_running_loop()._open:
            deadline.until = 0

    sender._loop.call_soon_threadsafe(end)


def request_to(url: str, *, loopback: bool = True, **fields: Any) -> OutgoingRequest:
    return OutgoingRequest(
        key=1,
        queue=1,
        limit=1,
        url=url,
        body=fields.get("body", b"{}"),
        sign=lambda _: {"Content-Type": "application/json"},
        timeout_s=fields.get("timeout_s", PATIENCE_S),
        networks=AllowedNetworks(loopback=loopback),
    )


def send(sender: Sender, request: OutgoingRequest) -> AttemptResult:
    sender.submit([request])
    return collected(sender)


def collected(sender: Sender) -> AttemptResult:
    """Return the result of the only request that is open."""
    [result] = sender.collect(wait_s=PATIENCE_S)
    return result


def in_turn(url: str, times: int, **fields: Any) -> list[AttemptResult]:
    """Make attempts one after the other, as one dispatcher makes them."""
    with Sender() as sender:
        return [send(sender, request_to(url, **fields)) for _ in range(times)]


OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NOT_HTTP = (Outcome.HTTP, None, "the answer was not valid HTTP")
CLOSED = (Outcome.CONNECT, None, "the connection was closed without an answer")
LATE = (Outcome.TIMEOUT, None, f"no answer within {PATIENCE_S:g} s")
FINE = (Outcome.OK, 200, "")

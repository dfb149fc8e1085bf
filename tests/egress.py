"""A real CONNECT proxy on loopback, behind which public addresses lead to test servers."""

import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.webhooks_core.network.hostile import receive

LOGIN = "Proxy-Authorization: Basic dXNlcjpwQHNz"  # user:p@ss


@dataclass
class EgressProxy:
    """Opens tunnels to `routes`, which map `address:port` to a port of this machine.

    Other addresses are refused with 502, and requests without `login` with 407. `answer` replaces
    every answer; None answers nothing.
    """

    routes: dict[str, int] = field(default_factory=dict)
    login: str = ""
    answer: bytes | None = b""
    asked: list[str] = field(default_factory=list)
    port: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://user:p%40ss@127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator["EgressProxy"]:
        self.stopped.clear()
        server = _Server(("127.0.0.1", self.port), _Handler)
        server.proxy, self.port = self, server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self.stopped.set()
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    proxy: EgressProxy


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        proxy, head = self.server.proxy, b""
        with suppress(OSError):
            while b"\r\n\r\n" not in head:
                head += receive(self.request)
            method, target, _ = head.decode().split(" ", 2)
            proxy.asked.append(f"{method} {target}")
            if proxy.answer is None:
                receive(self.request)  # nothing comes before the client gives up
            elif proxy.answer:
                self.request.sendall(proxy.answer)
            elif proxy.login not in head.decode():
                self.request.sendall(b"HTTP/1.1 407 Log In\r\n\r\nwho is it?")
            elif target not in proxy.routes:
                self.request.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\nno route")
            else:
                self.relay(proxy.routes[target])

    def relay(self, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            pairs = {self.request: upstream, upstream: self.request}
            while not self.server.proxy.stopped.is_set():
                for each in select.select(list(pairs), [], [], 0.02)[0]:
                    pairs[each].sendall(receive(each))

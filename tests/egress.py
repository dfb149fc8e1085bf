"""A real CONNECT proxy on loopback, behind which public addresses lead to test servers."""

import select
import socket

from tests.webhooks_core.network.hostile import Hostile, receive

LOGIN = "Proxy-Authorization: Basic dXNlcjpwQHNz"  # user:p@ss


class EgressProxy(Hostile):
    """Opens tunnels to `routes`, which map `address:port` to a port of this machine.

    Other addresses are refused with 502, and requests without `login` with 407. `answer` replaces
    every answer; None answers nothing.
    """

    def __init__(self, routes: dict[str, int] | None = None, login: str = "") -> None:
        super().__init__(self.serve)
        self.routes = routes or {}
        self.login = login
        self.answer: bytes | None = b""
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://user:p%40ss@127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket, _: Hostile) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += receive(connection)
        method, target, _version = head.decode().split(" ", 2)
        self.asked.append(f"{method} {target}")
        if self.answer is None:
            receive(connection)  # nothing comes before the client gives up
        elif self.answer:
            connection.sendall(self.answer)
        elif self.login not in head.decode():
            connection.sendall(b"HTTP/1.1 407 Log In\r\n\r\nwho is it?")
        elif target not in self.routes:
            connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\nno route")
        else:
            relay(connection, self.routes[target])


def relay(connection: socket.socket, port: int) -> None:
    """Carry bytes both ways until one end closes."""
    with socket.create_connection(("127.0.0.1", port)) as upstream:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pairs = {connection: upstream, upstream: connection}
        while True:
            for each in select.select(list(pairs), [], [])[0]:
                pairs[each].sendall(receive(each))

"""A client that costs little: raw sockets, kept alive, as many as there are threads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = (
    "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    "Accept: application/json\r\nContent-Length: {length}\r\n\r\n"
)


class BadAnswerError(Exception):
    """An answer that is not 200, or that carries errors."""


@dataclass(slots=True)
class Client:
    """One connection to one server."""

    connection: socket.socket
    port: int

    @classmethod
    def of(cls, port: int) -> Client:
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(connection, port)

    def send(self, body: bytes) -> bytes:
        """Return the body of the answer, or raise BadAnswerError."""
        head = HEAD.format(port=self.port, length=len(body)).encode()
        self.connection.sendall(head + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.read()
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = head.lower().split(b"\r\n")
        length = next(int(f[15:]) for f in fields if f.startswith(b"content-length:"))
        parts, missing = [rest], length - len(rest)
        while missing > 0:
            parts.append(self.read())
            missing -= len(parts[-1])
        answer = b"".join(parts)
        if b" 200 " not in fields[0] or b'"errors"' in answer:
            raise BadAnswerError((head + answer)[:500].decode(errors="replace"))
        return answer

    def close(self) -> None:
        self.connection.close()

    def read(self) -> bytes:
        if not (data := self.connection.recv(1 << 18)):
            raise BadAnswerError("the server closed the connection")
        return data


@dataclass(slots=True)
class Load:
    """What one server did with one operation in several rounds."""

    requests: int = 0
    cpu: float = 0.0
    rate: float = 0.0  # of the best round

    def add(self, requests: int, seconds: float, cpu: float) -> None:
        self.requests += requests
        self.cpu += cpu
        self.rate = max(self.rate, requests / seconds)

    @property
    def cpu_ms(self) -> float:
        return self.cpu / self.requests * 1000


def load(
    port: int, bodies: Sequence[bytes], *, seconds: float, clients: int
) -> tuple[int, float]:
    """Return the requests that one server answered to that many clients, and how long it took.

    Each client sends at least one.
    """
    counts, failures = [0] * clients, []
    started = time.perf_counter()
    until = started + seconds

    def run(place: int) -> None:
        client, sent = Client.of(port), place
        try:
            while sent == place or time.perf_counter() < until:
                client.send(bodies[sent % len(bodies)])
                sent += 1
        except (BadAnswerError, OSError) as error:
            failures.append(error)
        finally:
            counts[place] = sent - place
            client.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts), time.perf_counter() - started

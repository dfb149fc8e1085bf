"""A client for one server: connections that are kept alive, each in a thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


def send(connection: HTTPConnection, body: bytes) -> bytes:
    """Return the body of the answer; raise RuntimeError for one with errors."""
    connection.request("POST", "/graphql", body, HEADERS)
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200 or b'"errors"' in answer:
        raise RuntimeError(answer[:500].decode(errors="replace"))
    return answer


def ask(port: int, body: bytes) -> bytes:
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        return send(connection, body)


def load(
    port: int, bodies: Sequence[bytes], *, seconds: float, clients: int
) -> tuple[int, float]:
    """Return how many requests a server answered to that many clients, and how long it took."""
    started = time.perf_counter()

    def run(place: int) -> int:
        sent = place
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            while sent == place or time.perf_counter() < started + seconds:
                send(connection, bodies[sent % len(bodies)])
                sent += 1
        return sent - place

    with ThreadPoolExecutor(clients) as threads:
        counts = list(threads.map(run, range(clients)))
    return sum(counts), time.perf_counter() - started

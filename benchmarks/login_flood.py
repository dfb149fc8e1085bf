"""What a flood of logins costs others: the time of `GET /v1/webhooks` beside it and without it, in turns.

The clients of the flood run in a process of their own, and each sends its next login as soon as it
has the response to the last one. No address is limited, so that only the slots of logins protect others.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

from benchmarks.catalog.servers import Server, environment, prepare
from benchmarks.hostile.command import token_of_an_account, web

CLIENTS, ROUNDS, ROUND_S, PAUSE_S = 16, 5, 4.0, 0.02
TARGET = 2.0
CSRF = "a" * 32
HEADERS = {
    "Cookie": f"csrftoken={CSRF}",
    "Content-Type": "application/x-www-form-urlencoded",
}


def run() -> str:
    """Return the figures of `ROUNDS` pairs as one line."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/bench.sqlite3"
        prepare(database)
        variables = environment(database) | {"OAUTH_LOGIN_RATE": ""}
        token = token_of_an_account(variables)
        with web(variables, Path(folder) / "web.log") as server:
            times(server, token)  # warms up
            pairs = [
                (times(server, token), beside(server, token)) for _ in range(ROUNDS)
            ]
    return summary(pairs)


def summary(pairs: list[tuple[list[float], list[float]]]) -> str:
    """Return the ratio of the medians, round by round, and the times of the median round."""
    medians = [tuple(map(statistics.median, pair)) for pair in pairs]
    ratios = sorted(flood / alone for alone, flood in medians)
    alone, flood = (
        statistics.median(each) * 1000 for each in zip(*medians, strict=True)
    )
    return (
        f"GET /v1/webhooks, p50: {alone:.1f} ms alone, {flood:.1f} ms beside {CLIENTS} clients"
        f" that log in; ratio {statistics.median(ratios):.2f}"
        f" ({ratios[0]:.2f} to {ratios[-1]:.2f}), wanted: at most {TARGET}"
    )


def beside(server: Server, token: str) -> list[float]:
    with flood(server):
        return times(server, token)


def times(server: Server, token: str) -> list[float]:
    """Return the seconds of each request of one client in `ROUND_S`."""
    found, end = [], time.monotonic() + ROUND_S
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        while (start := time.monotonic()) < end:
            client.request(
                "GET", "/v1/webhooks", None, {"Authorization": f"Bearer {token}"}
            )
            response = client.getresponse()
            response.read()
            if response.status != 200:
                raise RuntimeError(f"GET /v1/webhooks: {response.status}")
            found.append(time.monotonic() - start)
            time.sleep(PAUSE_S)
    return found


@contextmanager
def flood(server: Server) -> Iterator[None]:
    process = get_context("fork").Process(
        target=log_in, args=(server.port,), daemon=True
    )
    process.start()
    time.sleep(1)  # until all clients have begun
    try:
        yield
    finally:
        process.kill()
        process.join()


def log_in(port: int) -> None:
    """Be the clients of a flood, until the process is killed."""
    for _ in range(CLIENTS):
        threading.Thread(target=_log_in, args=(port,)).start()


def _log_in(port: int) -> None:
    while True:
        # Another name each time: the lock after failed logins would end the hashing.
        form = {
            "csrfmiddlewaretoken": CSRF,
            "username": uuid4().hex,
            "password": "guess",
        }
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as client:
            client.request("POST", "/accounts/login", urlencode(form), HEADERS)
            client.getresponse().read()

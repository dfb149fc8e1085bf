"""Which connections are kept, and for whom."""

import socket
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    CHUNKED,
    EMPTY,
    OK,
    Hostile,
    in_turn,
    receive,
    request_to,
    send,
)
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network import pool, transport
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connection import Origin
from webhooks_core.network.errors import Outcome

HINT = b"HTTP/1.1 103 Early Hints\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n"


def serving(*responses: bytes) -> Any:
    """Give each request of a connection the next response, and then close."""

    def behave(connection: socket.socket, _: Hostile) -> None:
        for response in responses:
            receive(connection)
            connection.sendall(response)

    return behave


@pytest.mark.parametrize(
    ("first", "connections"),
    [
        (EMPTY, 1),
        (CHUNKED + b"1\r\na\r\n0\r\n\r\n", 1),
        (NO_CONTENT + b"\r\n", 1),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\na", 2),
        (OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n", 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 2),
        (EMPTY + b"HTTP/1.1 500 Stray\r\n\r\n", 2),
        (OK + b"Content-Length: 20000\r\n\r\n" + b"a" * 17_000, 2),
        (OK + b"Content-Length: 2\r\n\r\na", 2),
        (OK + b"\r\na", 2),
        (EMPTY + b"X", 2),
        (HINT * 3 + EMPTY, 1),
        (NO_CONTENT + b"Content-Length: 0\r\n\r\n", 1),
        (b"HTTP/1.1 303 See\r\nContent-Length: 0\r\n\r\n", 2),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 2),
    ],
)
def test_a_connection_is_kept_if_it_can_serve_again(first, connections, monkeypatch):
    monkeypatch.setattr(
        transport, "READ_FOR_S", PATIENCE_S if connections == 1 else 0.1
    )
    with Hostile(serving(first, EMPTY)).running() as server:
        results = in_turn(server.url, 2)
    assert server.accepted == connections
    assert results[1].status_code
    is_fresh = [result.timings[0] is not None for result in results]
    assert is_fresh == [True, connections == 2]


def test_connections_are_kept_for_their_owner_alone_and_only_so_many(monkeypatch):
    monkeypatch.setattr(pool, "KEEP_MOST", 2)
    with Hostile(serving(*[EMPTY] * 9)).running() as server, Sender() as sender:
        request = request_to(server.url)
        for name in "aabbaccab":
            result = send(sender, request._replace(owner=("recording", name)))
            assert (result.outcome, result.is_repeated) == (Outcome.OK, False)
    assert server.accepted == 4  # a, b, and c twice: there was no room


def test_a_kept_connection_that_ends_within_a_response_is_a_failure_and_not_repeated():
    """The receiver has the request: it began to answer it."""
    with Hostile(serving(EMPTY, b"HTTP/1.1 20")).running() as server:
        results = in_turn(server.url, 2)
    assert [result.outcome for result in results] == [Outcome.OK, Outcome.CONNECT]
    assert not results[1].is_repeated
    assert server.accepted == 1


class Clock:
    """A loop of which only the time and the timer are used."""

    now = 0.0
    tick: Callable[[], None]

    def time(self) -> float:
        return self.now

    def call_later(self, _: float, tick: Callable[[], None]) -> None:
        self.tick = tick


def test_the_timer_closes_what_was_kept_long_enough_and_nothing_else():
    clock, closed = Clock(), list[float]()
    connections = pool.Connections(AllowedNetworks(), cast("Any", clock), {})
    route = (Origin("a.example", 80, is_tls=False), ("", ""))
    for at in (0.0, 1.0):
        clock.now = at
        end = partial(closed.append, at)
        kept = SimpleNamespace(is_reusable=True, abort=end, route=route)
        connections.keep(cast("Any", kept))
    for now, expected in ((30.5, [0.0]), (31.5, [0.0, 1.0])):
        clock.now = now
        clock.tick()
        assert closed == expected
    connections.close()
    connections.keep(cast("Any", kept))  # its request outlived the others
    assert closed == [0.0, 1.0, 1.0]

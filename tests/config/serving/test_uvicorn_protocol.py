"""Clients that make no progress are disconnected, and no other client is."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from config.serving import uvicorn_protocol
from config.serving.uvicorn_protocol import HttpProtocol
from tests.config.serving.test_server import served
from tests.running import PATIENCE_S, until

LARGE = 20_000_000
REQUEST = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Served:
    """A client's socket, and the server's side of its connection."""

    socket: socket.socket
    ends: list[HttpProtocol]
    answer: threading.Event = field(default_factory=threading.Event)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> bytes:
        """Read to the end, whichever way it ends."""
        data = bytearray()
        with suppress(ConnectionError):
            while part := self.socket.recv(1_000_000):
                data += part
        return bytes(data)

    def check(self) -> int:
        """Have the server check for progress; return the number of unread bytes, 0 after the end."""
        if (end := next(iter(self.ends), None)) is None:
            return 0
        is_checked = threading.Event()
        end.loop.call_soon_threadsafe(end._check)
        end.loop.call_soon_threadsafe(is_checked.set)
        assert is_checked.wait(PATIENCE_S)
        return end._last_awaited[0] if end._last_awaited else 0

    def unread(self) -> int:
        if (end := next(iter(self.ends), None)) is None:
            return 0
        return end.transport.get_write_buffer_size()


@pytest.fixture
def client(monkeypatch) -> Iterator[Served]:
    ends: list[HttpProtocol] = []
    made: list[HttpProtocol] = []  # one that has ended stays here
    original_made, lost = HttpProtocol.connection_made, HttpProtocol.connection_lost

    def note_made(self: HttpProtocol, transport: Any) -> None:
        ends.append(self)
        made.append(self)
        original_made(self, transport)

    def note_lost(self: HttpProtocol, exc: Exception | None) -> None:
        ends.remove(self)
        lost(self, exc)

    monkeypatch.setattr(HttpProtocol, "connection_made", note_made)
    monkeypatch.setattr(HttpProtocol, "connection_lost", note_lost)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        """Answer at once, when a test sets `answer`, at length, or never: the path says which."""
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["path"] == "/until-left":
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        if scope["path"] == "/slow":
            await asyncio.to_thread(peer.answer.wait, PATIENCE_S)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = b"x" * LARGE if scope["path"] == "/large" else b"done"
        await send({"type": "http.response.body", "body": body})

    with served(application) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.socket() as connected:
            # A small buffer that does not grow: what a test has not read waits in the server.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
            connected.settimeout(PATIENCE_S)
            connected.connect((host, int(port)))
            peer = Served(connected, ends)
            until(lambda: made, "the connection")
            yield peer


@pytest.fixture
def frequent_checks(monkeypatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "CHECK_INTERVAL_S", 0.1)


@pytest.mark.parametrize("data", [b"", b"GET / HT", REQUEST[:-2] % b""])
def test_a_client_that_does_not_finish_a_head_is_disconnected(
    frequent_checks, client, data
):
    with suppress(ConnectionError):
        client.send(data)
    assert client.read() == b""


def test_a_client_that_sends_a_head_in_small_parts_is_disconnected(client):
    client.send(b"GET / HTTP/1.1\r\n")
    until(lambda: client.ends[0].scope, "the head")
    client.check()
    client.send(b"X: y\r\n")
    client.check()
    assert client.read() == b""


@pytest.fixture
def short_keep_alive(settings) -> None:
    settings.WEB_KEEP_ALIVE_S = 1


def test_a_client_with_an_unfinished_second_request_is_disconnected(
    short_keep_alive, client
):
    client.send(REQUEST % b"" + b"GET / HT")
    assert b"done" in client.socket.recv(1000)
    client.check()
    client.check()
    assert b"HTTP/1.1" not in client.read()


@pytest.mark.parametrize("line", [b"X: y\r\n", b"y"])
def test_a_head_without_end_is_refused(client, line):
    client.send(b"GET / HTTP/1.1\r\nX: ")
    with suppress(ConnectionError):
        client.send(line * 1_000_000)
    client.read()
    until(lambda: not client.ends, "the end of the connection")


def test_a_large_head_is_accepted(client):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(100))
    client.send(REQUEST[:-2] % b"" + lines + b"\r\n")
    assert client.socket.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_a_response_is_disconnected(
    frequent_checks, client
):
    client.send(REQUEST % b"large")
    until(lambda: not client.ends, "the end of the connection")
    # Reset: neither the server nor its kernel keeps what was not read.
    with pytest.raises(ConnectionResetError):
        b"".join(iter(lambda: client.socket.recv(1_000_000), b""))


def test_a_client_that_reads_too_slowly_is_disconnected(client, monkeypatch):
    monkeypatch.setattr(uvicorn_protocol, "MAX_CHECKS", 3)
    client.send(REQUEST % b"large")
    # Each check counts: none is made before the answer waits.
    until(client.unread, "an answer that is not read")
    until(client.check, "a check that finds the whole answer unread")
    for _ in range(3):
        unread = client.unread()
        while client.ends and client.unread() == unread:
            client.socket.recv(100_000)
        client.check()
    until(lambda: not client.ends, "the end of the connection")


def test_a_client_that_reads_slowly_gets_everything(client, monkeypatch):
    monkeypatch.setattr(uvicorn_protocol, "MAX_CHECKS", 1_000_000)
    client.send(REQUEST % b"large")
    until(client.unread, "the answer")
    data = b""
    while client.unread():
        seen = client.check()
        while client.unread() == seen:
            data += client.socket.recv(100_000)
    client.send(REQUEST % b"")
    while not data.endswith(b"done\r\n0\r\n\r\n"):
        part = client.socket.recv(1_000_000)
        assert part
        data += part
    assert data.count(b"x") == LARGE


def test_no_client_is_disconnected_while_the_server_answers_or_between_requests(client):
    for _ in range(2):
        client.answer.clear()
        client.send(REQUEST % b"slow")
        until(lambda: client.ends[0].cycle, "the request")
        client.check()
        client.check()
        client.answer.set()
        answer = b""
        while b"done" not in answer:
            part = client.socket.recv(1000)
            assert part
            answer += part
        client.check()
        client.check()


@pytest.mark.parametrize("requests", [1, 2, 3])
def test_a_request_ends_when_its_client_leaves_whatever_follows_it(
    client, caplog, requests
):
    client.send(REQUEST % b"until-left" + REQUEST % b"" * (requests - 1))
    until(lambda: client.ends[0].cycle, "the request")
    (end,) = client.ends
    client.socket.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    client.socket.close()
    until(lambda: not end.tasks, "the end of the request")
    assert [record.getMessage() for record in caplog.records] == []

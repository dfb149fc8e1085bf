"""Clients that leave something unfinished: each is cut off, and nobody else is."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from config.serving import uvicorn_protocol
from config.serving.uvicorn_protocol import BufferedTransport, HttpProtocol
from tests.config.serving.test_server import served
from tests.running import until

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
        found = bytearray()
        with suppress(ConnectionError):
            while part := self.socket.recv(1_000_000):
                found += part
        return bytes(found)

    def look(self) -> int:
        """Have the server look whether anything has moved since; return what is unread."""
        (end,) = self.ends
        looked = threading.Event()
        end.loop.call_soon_threadsafe(end._look)
        end.loop.call_soon_threadsafe(looked.set)
        assert looked.wait(20)
        return end._seen[0] if end._seen else 0

    def unread(self) -> int:
        (end,) = self.ends
        return end.transport.get_write_buffer_size()


@pytest.fixture
def client(monkeypatch) -> Iterator[Served]:
    ends: list[HttpProtocol] = []
    made, lost = HttpProtocol.connection_made, HttpProtocol.connection_lost

    def note_made(self: HttpProtocol, transport: Any) -> None:
        ends.append(self)
        made(self, transport)

    def note_lost(self: HttpProtocol, exc: Exception | None) -> None:
        ends.remove(self)
        lost(self, exc)

    monkeypatch.setattr(HttpProtocol, "connection_made", note_made)
    monkeypatch.setattr(HttpProtocol, "connection_lost", note_lost)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        """Answer at once, or when a test says so, or at length: by what the path says."""
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["path"] == "/slow":
            await asyncio.to_thread(it.answer.wait, 20)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = b"x" * LARGE if scope["path"] == "/large" else b"done"
        await send({"type": "http.response.body", "body": body})

    with served(application) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 20) as connected:
            it = Served(connected, ends)
            until(lambda: ends, "the connection")
            yield it


@pytest.fixture
def hurry(monkeypatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "LOOK_EVERY_S", 0.1)


@pytest.mark.parametrize("said", [b"", b"GET / HT", REQUEST[:-2] % b""])
def test_who_does_not_finish_the_head_of_a_request_is_cut_off(hurry, client, said):
    with suppress(ConnectionError):
        client.send(said)
    assert client.read() == b""


def test_who_sends_a_head_bit_by_bit_is_cut_off(client):
    client.send(b"GET / HTTP/1.1\r\n")
    until(lambda: client.ends[0].scope, "the head")
    client.look()
    client.send(b"X: y\r\n")
    client.look()
    assert client.read() == b""


@pytest.fixture
def soon_idle(settings) -> None:
    settings.WEB_KEEP_ALIVE_S = 1


def test_a_second_request_may_not_stay_unfinished_either(soon_idle, client):
    client.send(REQUEST % b"" + b"GET / HT")
    assert b"done" in client.socket.recv(1000)
    client.look()
    client.look()
    assert b"HTTP/1.1" not in client.read()


@pytest.mark.parametrize("line", [b"X: y\r\n", b"y"])
def test_a_head_without_end_is_refused(client, line):
    client.send(b"GET / HTTP/1.1\r\nX: ")
    with suppress(ConnectionError):
        client.send(line * 1_000_000)
    client.read()
    until(lambda: not client.ends, "the end of the connection")


def test_a_large_head_is_taken(client):
    lines = b"".join(b"X-%d: %s\r\n" % (it, b"y" * 1000) for it in range(100))
    client.send(REQUEST[:-2] % b"" + lines + b"\r\n")
    assert client.socket.recv(1000).startswith(b"HTTP/1.1 200")


def test_who_does_not_read_an_answer_is_cut_off(hurry, client):
    client.send(REQUEST % b"large")
    until(lambda: not client.ends, "the end of the connection")
    # Reset: neither the server nor its kernel keeps what was not read.
    with pytest.raises(ConnectionResetError):
        b"".join(iter(lambda: client.socket.recv(1_000_000), b""))


def test_who_reads_slowly_gets_everything(client):
    client.send(REQUEST % b"large")
    until(client.unread, "the answer")
    found = b""
    while client.unread():
        seen = client.look()
        while client.unread() == seen:
            found += client.socket.recv(100_000)
    client.send(REQUEST % b"")
    while not found.endswith(b"done\r\n0\r\n\r\n"):
        part = client.socket.recv(1_000_000)
        assert part
        found += part
    assert found.count(b"x") == LARGE


def test_nobody_is_hurried_while_an_answer_is_made_or_between_two(client):
    for _ in range(2):
        client.answer.clear()
        client.send(REQUEST % b"slow")
        until(lambda: client.ends[0].cycle, "the request")
        client.look()
        client.look()
        client.answer.set()
        answer = b""
        while b"done" not in answer:
            part = client.socket.recv(1000)
            assert part
            answer += part
        client.look()
        client.look()


class Wire(asyncio.Transport):
    """Notes what is written, as the kernel would get it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.ended = ""

    def write(self, data: Any) -> None:
        self.pieces.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.pieces.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return bool(self.ended)

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"


def written(*steps: Any) -> tuple[list[bytes], str]:
    """Return what reaches the wire by these steps, all in one turn of the loop, and its end."""

    async def write() -> tuple[list[bytes], str]:
        wire = Wire()
        transport = BufferedTransport(wire, asyncio.get_running_loop())
        for step in steps:
            step(transport)
        await asyncio.sleep(0)
        return wire.pieces, wire.ended

    return asyncio.run(write())


def test_an_answer_goes_out_in_one_piece():
    assert written(
        lambda it: it.write(b"head"),
        lambda it: it.write(b"body"),
    ) == ([b"headbody"], "")


def test_what_nothing_follows_goes_out_by_itself():
    assert written(lambda it: it.write(b"chunk")) == ([b"chunk"], "")
    assert written(lambda it: it.write(b"head"), lambda it: it.write(b"")) == (
        [b"head"],
        "",
    )


def test_what_is_held_is_sent_before_the_end_and_forgotten_by_a_reset():
    head = lambda it: it.write(b"head")  # noqa: E731
    assert written(head, BufferedTransport.close) == ([b"head"], "closed")
    assert written(head, BufferedTransport.abort) == ([], "aborted")
    assert written(head, lambda it: it._transport.close()) == ([], "closed")


def test_what_is_held_counts_as_unsent():
    async def size() -> int:
        transport = BufferedTransport(Wire(), asyncio.get_running_loop())
        transport.write(b"head")
        return transport.get_write_buffer_size()

    assert asyncio.run(size()) == 4

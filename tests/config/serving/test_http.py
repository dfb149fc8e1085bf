"""HTTP/1.1 to the letter, byte by byte: trailers, upgrades, methods, framing, clients that leave."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIHandler

from config.wsgi import application as wsgi
from tests.config.serving.servers import bridged, served, with_lifespan
from tests.connections import connected, has_read, read
from tests.running import PATIENCE_S, until

HEAD = b"POST /here HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@dataclass
class Echo:
    """An ASGI application that answers what it was asked; a path may say when."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        else:
            return  # gone
        request = {
            "method": scope["method"],
            "path": scope["path"],
            "headers": {k.decode(): v.decode() for k, v in scope["headers"]},
            "body": body.decode(),
        }
        self.asked.append(request)
        await self._answer(request, receive, send)

    async def _answer(self, request: dict[str, Any], receive: Any, send: Any) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": []}
        body = {"type": "http.response.body", "body": json.dumps(request).encode()}
        if request["path"] == "/wait":
            await self._wait(receive)
        await send(head)
        if request["path"] == "/stream":
            await send({**body, "more_body": True})
            await self._wait(receive)
        await send(body)

    async def _wait(self, receive: Any) -> None:
        """Wait until a test says so, or until the client has gone."""

        async def look() -> None:
            if (await receive())["type"] == "http.disconnect":
                self.gone.append("gone")
                self.go_on.set()

        looking = asyncio.create_task(look())
        await asyncio.to_thread(self.go_on.wait, PATIENCE_S)
        looking.cancel()

    def exchange(self, *parts: bytes) -> bytes:
        """Send parts, each in a packet that the server has read, and read to the end."""
        with connected(self.url) as client:
            for part in parts:
                client.sendall(part)
                if part is not parts[-1]:
                    until(lambda: has_read(client), "the server to read")
            return read(client)


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    with served(with_lifespan(server)) as server.url:
        yield server
        server.go_on.set()


TRAILERS = [
    b"X-Tenant-Id: acme\r\nX-Principal-Id: ada",
    b"Authorization: Bearer sgp_key",
    b"Host: evil.example",
    b"Cookie: sessionid=1",
    b"X-Forwarded-Proto: https",
    b"Connection: upgrade\r\nUpgrade: foo",
]


@pytest.mark.parametrize("trailer", TRAILERS)
@pytest.mark.parametrize("is_later", [False, True])
def test_a_trailer_is_never_a_header(echo, trailer, is_later):
    body, end = b"4\r\nbody\r\n0\r\n", trailer + b"\r\n\r\n" + NEXT
    echo.exchange(*([CHUNKED + body, end] if is_later else [CHUNKED + body + end]))
    assert [request["path"] for request in echo.asked] == ["/here", "/next"]
    assert echo.asked[0]["body"] == "body"
    assert echo.asked[0]["headers"] == {"host": "x", "transfer-encoding": "chunked"}


@pytest.mark.parametrize("path", [b"/v1/webhooks/subscriptions", b"/v1/ingest"])
@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("handler", ["the bridge", "Django's own"])
def test_a_trailer_gives_no_identity(handler, path, is_later):
    lines = b"X-Tenant-Id: acme\r\nX-Principal-Id: ada\r\nHost: evil.example\r\n\r\n"
    start = CHUNKED.replace(b"/here", path).replace(b": x", b": localhost")
    start += b"2\r\n{}\r\n0\r\n"
    parts = [start, lines] if is_later else [start + lines]
    own = with_lifespan(ASGIHandler())
    with bridged(wsgi) if handler == "the bridge" else served(own) as url:
        answer = Echo(url).exchange(*parts[:-1], parts[-1] + NEXT)
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "trailer", [b"Content-Length: 5", b"Transfer-Encoding: chunked"]
)
def test_a_trailer_that_frames_a_message_is_refused(echo, trailer):
    answer = echo.exchange(
        CHUNKED + b"4\r\nbody\r\n0\r\n" + trailer + b"\r\n\r\n" + NEXT
    )
    assert not any(request["headers"].get("content-length") for request in echo.asked)
    assert answer.count(b"/next") == 0


@pytest.mark.parametrize("endless", [b"0\r\nX: ", b"0\r\n" + b"X: y\r\n", b"1;"])
def test_unlimited_trailers_and_extensions_are_refused(echo, endless):
    with connected(echo.url) as client:
        client.sendall(CHUNKED + endless)
        with suppress(ConnectionError):
            for _ in range(100):
                client.sendall(
                    b"X: y\r\n" * 10_000 if b"y" in endless else b"x" * 50_000
                )
        assert b"200 OK" not in read(client)


@pytest.mark.parametrize(
    "offer",
    [
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
        b"Connection: upgrade\r\nUpgrade: websocket",
        b"Upgrade: foo/2\r\nConnection: keep-alive, Upgrade",
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        b"\r\nContent-Length: 4\r\n\r\nbody",
        b"\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX: y\r\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [1, 30, 10_000])
def test_an_unsupported_upgrade_is_ignored(echo, offer, rest, size):
    sent = HEAD + offer + rest + b"GET /two HTTP/1.1\r\nHost: x\r\n" + offer
    sent += b"\r\n\r\n" + NEXT
    with connected(echo.url) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), size):
            client.sendall(sent[start : start + size])
        answer = read(client)
    assert [(request["path"], request["body"]) for request in echo.asked] == [
        ("/here", "body"),
        ("/two", ""),
        ("/next", ""),
    ]
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert echo.asked[0]["method"] == "POST"
    assert b"101" not in answer


def test_a_thousand_offers_in_one_packet_are_answered(echo):
    offer = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    assert echo.exchange(offer * 1000 + NEXT).count(b"HTTP/1.1 200 OK") == 1001


def test_the_application_gets_a_method_of_webdav(echo):
    request = b"PROPFIND /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
    echo.exchange(request + NEXT)
    assert [(one["method"], one["body"]) for one in echo.asked] == [
        ("PROPFIND", "body"),
        ("GET", ""),
    ]


@pytest.mark.parametrize(
    "line", [b"CONNECT x:1 HTTP/1.1", b"PRI * HTTP/2.0", b"FOO /a HTTP/1.1"]
)
def test_a_request_that_is_not_for_this_server_is_refused(echo, line):
    assert echo.exchange(line + b"\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert echo.asked == []


def test_a_large_head_is_accepted_and_one_without_end_is_refused(echo):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(100))
    assert b"200 OK" in echo.exchange(NEXT[:-2] + lines + b"\r\n")
    with connected(echo.url) as client, suppress(ConnectionError):
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"y" * 200_000)
        assert read(client).startswith(b"HTTP/1.1 400 ")
    assert len(echo.asked) == 1


LENGTH = b"Content-Length: 5\r\n"
BODY = b"\r\n5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("_case", "request_"),
    [
        ("a length and chunks", HEAD + LENGTH + CHUNKED[len(HEAD) : -2] + BODY),
        ("chunks and a length", CHUNKED[:-2] + LENGTH + BODY),
        ("two lengths", HEAD + LENGTH + b"Content-Length: 6\r\n\r\nhello!"),
        ("the same length twice", HEAD + LENGTH + LENGTH + b"\r\nhello"),
        ("a list of lengths", HEAD + b"Content-Length: 5, 5\r\n\r\nhello"),
        ("a length with a sign", HEAD + b"Content-Length: +5\r\n\r\nhello"),
        ("chunks and then identity", CHUNKED[:-4] + b", identity\r\n" + BODY),
        ("gzip in chunks", HEAD + b"Transfer-Encoding: gzip, chunked\r\n" + BODY),
        (
            "gzip in chunks, in two lines",
            HEAD + b"Transfer-Encoding: gzip\r\n" + CHUNKED[len(HEAD) : -2] + BODY,
        ),
        ("gzip alone", HEAD + b"Transfer-Encoding: gzip\r\n" + BODY),
        ("an unknown coding", HEAD + b"Transfer-Encoding: xchunked\r\n" + BODY),
        (
            "TE that names chunked",
            HEAD + b"TE: gzip, chunked\r\n" + LENGTH + b"\r\nhello",
        ),
        ("a bare LF behind the first line", b"GET / HTTP/1.1\nHost: x\r\n\r\n"),
        ("a bare LF behind a header", b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"),
        ("a bare CR", b"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n"),
        ("a folded line", HEAD + b"X: y\r\n z\r\n" + LENGTH + b"\r\nhello"),
        ("a space before the colon", HEAD + b"Content-Length : 5\r\n\r\nhello"),
        ("a space before the first header", b"GET / HTTP/1.1\r\n Host: x\r\n\r\n"),
        ("a NUL in a value", b"GET / HTTP/1.1\r\nHost: x\x00\r\n\r\n"),
        ("a bare LF behind a size", CHUNKED + b"5\nhello\r\n0\r\n\r\n"),
        ("a bare LF in an extension", CHUNKED + b"5;a\nhello\r\n0\r\n\r\n"),
        ("a size with a prefix", CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"),
        ("a negative size", CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"),
        ("a size beyond 64 bits", CHUNKED + b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("a chunk that goes on", CHUNKED + b"5\r\nhelloX\r\n0\r\n\r\n"),
    ],
)
def test_a_request_that_two_servers_read_differently_is_refused(echo, _case, request_):
    answer = echo.exchange(request_ + NEXT)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert echo.asked == []


@pytest.mark.parametrize("how", ["closes", "ends its own side"])
@pytest.mark.parametrize("path", ["/wait", "/stream"])
def test_a_client_that_ends_its_side_is_noticed_while_nothing_is_sent(echo, path, how):
    with connected(echo.url) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: echo.asked, "the request")
        if path == "/stream":
            until(lambda: b"/stream" in client.recv(1000), "the first part")
        if how == "ends its own side":
            client.shutdown(socket.SHUT_WR)
            assert read(client) == b""
    until(lambda: echo.gone, "the end of the client")


@pytest.mark.parametrize("said", [b"", b"GET / HT", HEAD + LENGTH + b"\r\nhel"])
def test_a_client_that_ends_within_a_request_is_disconnected(echo, said):
    with connected(echo.url) as client:
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
        assert read(client) == b""

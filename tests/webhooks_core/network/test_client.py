"""The client whose answers are read in parts: framing, limits, kept connections, proxies."""

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from socket import socket

import pytest
import trustme

from tests.egress import LOGIN, EgressProxy
from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    CHUNKED,
    CONTINUE,
    EMPTY,
    OK,
    Hostile,
    answering,
    answers_once,
    answers_unread,
    closes_at_once,
    pouring,
    read_request,
    receive,
)
from webhooks_core.network import connection as connections
from webhooks_core.network.client import HttpClient
from webhooks_core.network.errors import NotHttpError, ProxyRefusedError

BODY = bytes(range(256)) * 2000
LARGE = b"x" * (connections.PART_BYTES * 40)  # more than kernels keep
PACKED = gzip.compress(BODY)
LENGTH = b"Content-Length: %d\r\n"
KEPT = OK + LENGTH % 2 + b"\r\nok"


@dataclass
class Post:
    """Requests of one client, one after the other."""

    url: str
    through: str = ""
    body: bytes = b"{}"

    async def by(self, client: HttpClient) -> bytes:
        answer = await client.post(
            self.url, {"X": "1"}, self.body, connect_s=PATIENCE_S, through=self.through
        )
        try:
            parts = []
            while part := await answer.read():
                parts.append(part)
            return b"%d " % answer.status + b"".join(parts)
        finally:
            answer.close()

    def made(self, times: int = 1) -> list[bytes]:
        async def run() -> list[bytes]:
            client = HttpClient({"User-Agent": "tests"})
            try:
                return [await self.by(client) for _ in range(times)]
            finally:
                await client.close()

        return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def answer_of(behave: Callable[[socket, Hostile], None]) -> bytes:
    with Hostile(behave).running() as server:
        return Post(server.url).made()[0]


def chunks(data: bytes, size: int) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@pytest.mark.parametrize(
    "parts",
    [
        [OK, LENGTH % len(BODY), b"\r\n", BODY],
        [CHUNKED, chunks(BODY, 1000), b"0\r\nTrailer: 1\r\n\r\n"],
        [OK, b"\r\n", BODY],  # as far as the connection
        [CONTINUE * 3, OK, LENGTH % len(BODY), b"\r\n", BODY],
        [OK, b"Content-Encoding: gzip\r\n\r\n", PACKED],
        [OK, b"Content-Encoding: deflate\r\n\r\n", zlib.compress(BODY)],
        [OK, b"Content-Encoding: deflate\r\n\r\n", zlib.compress(BODY, wbits=-15)],
        [CHUNKED[:-2], b"content-encoding: GZIP\r\n\r\n", chunks(PACKED, 7), b"0\r\n\r\n"],
    ],
)  # fmt: skip
def test_a_body_in_any_framing_is_whole(parts):
    assert answer_of(answering(*parts)) == b"200 " + BODY


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([OK, LENGTH % 10, b"\r\nshort"], ConnectionResetError),
        ([CHUNKED, b"5\r\nshort\r\n"], ConnectionResetError),
        ([CHUNKED, b"nonsense\r\n"], NotHttpError),
        ([b"SSH-2.0-server\r\n"], NotHttpError),
        ([CONTINUE * 3000], NotHttpError),
        ([OK, b"X: " + b"x" * 70_000 + b"\r\n\r\n"], NotHttpError),
        ([OK, b"Content-Encoding: br\r\n\r\nx"], NotHttpError),
        ([OK, b"Content-Encoding: gzip\r\n\r\nnonsense"], NotHttpError),
        ([OK, LENGTH % 50, b"Content-Encoding: gzip\r\n\r\n", PACKED[:50]], NotHttpError),
        ([], ConnectionResetError),
    ],
)  # fmt: skip
def test_what_is_cut_or_no_http_is_an_error(parts, error):
    with pytest.raises(error):
        answer_of(answering(*parts))


def test_a_small_body_that_unpacks_to_a_large_one_comes_in_small_parts():
    bomb = gzip.compress(b"\0" * 30_000_000)
    behave = answering(OK, b"Content-Encoding: gzip\r\n\r\n", bomb)
    assert len(answer_of(behave)) == 30_000_004


def test_a_reader_that_is_slow_stops_the_server():
    async def run(server: Hostile) -> None:
        client = HttpClient({})
        answer = await client.post(server.url, {}, b"{}", connect_s=PATIENCE_S)
        await answer.read()
        sent = -1
        while sent != server.sent:  # until it cannot send any more
            sent = server.sent
            await asyncio.sleep(0.3)
        assert len(answer._connection._body) < connections.HIGH_BYTES * 2
        await answer.read()
        await answer.read()
        answer.close()
        await client.close()

    with Hostile(pouring(OK + b"\r\n", b"x" * 65536)).running() as server:
        asyncio.run(asyncio.wait_for(run(server), PATIENCE_S))


def keeping(*answer: bytes) -> Callable[[socket, Hostile], None]:
    def behave(connection: socket, server: Hostile) -> None:
        for _ in repeat(None):
            read_request(connection)
            server.requests += 1
            connection.sendall(b"".join(answer))

    return behave


@pytest.mark.parametrize("answer", [KEPT, CHUNKED + b"2\r\nok\r\n0\r\n\r\n"])
def test_a_connection_serves_again_after_a_complete_answer(answer):
    with Hostile(keeping(answer)).running() as server:
        assert Post(server.url).made(3) == [b"200 ok"] * 3
    assert server.accepted == 1


@pytest.mark.parametrize(
    "answer",
    [
        KEPT + KEPT,  # more than one to a request
        KEPT + b"x",
        OK + b"Connection: close\r\n" + LENGTH % 2 + b"\r\nok",
        b"HTTP/1.0" + KEPT[8:],
    ],
)
def test_a_connection_that_may_be_out_of_step_is_not_used_again(answer):
    with Hostile(keeping(answer)).running() as server:
        assert Post(server.url).made(2) == [b"200 ok"] * 2
    assert server.accepted == 2


def test_a_request_is_repeated_once_if_a_kept_connection_ends_without_an_answer():
    with Hostile(answers_once).running() as server:
        assert Post(server.url).made(2) == [b"204 "] * 2
    assert server.accepted == 2
    with (
        Hostile(closes_at_once).running() as server,
        pytest.raises(ConnectionResetError),
    ):
        Post(server.url).made()
    assert server.accepted == 1


def test_a_large_body_is_sent_whole():
    def count(connection: socket, server: Hostile) -> None:
        read_request(connection)
        connection.sendall(EMPTY)

    with Hostile(count).running() as server:
        assert Post(server.url, body=LARGE).made() == [b"200 "]


def test_a_server_that_answers_before_it_read_everything_is_heard():
    with Hostile(answers_unread).running() as server:
        assert Post(server.url, body=LARGE).made() == [b"200 ok"]


def test_a_header_cannot_leave_its_line():
    async def run() -> None:
        client = HttpClient({})
        with suppress(OSError):
            await client.post(
                "http://127.0.0.1:9", {"X": "1\r\nY: 2"}, b"", connect_s=1
            )

    with pytest.raises(ValueError, match="a header holds a line break"):
        asyncio.run(run())


@pytest.fixture
def tls(settings, tmp_path):
    ca = trustme.CA()
    settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
    ca.cert_pem.write_to_path(settings.EXTRA_CA_FILE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", "model.example").configure_cert(context)
    return context


def test_certificates_are_checked(tls, settings):
    with Hostile(keeping(KEPT), tls).running() as server:
        assert Post(server.url).made(2) == [b"200 ok"] * 2
        assert server.accepted == 1
        settings.EXTRA_CA_FILE = ""
        with pytest.raises(ssl.SSLCertVerificationError):
            Post(server.url).made()


def test_a_proxy_opens_a_tunnel_to_a_server_of_https(tls):
    with (
        EgressProxy(login=LOGIN).running() as egress,
        Hostile(keeping(KEPT), tls).running() as server,
    ):
        egress.routes["model.example:443"] = server.port
        url = "https://model.example/v1"
        assert Post(url, egress.url).made(2) == [b"200 ok"] * 2
        assert egress.asked == ["CONNECT model.example:443"]
        with pytest.raises(ProxyRefusedError, match="502"):
            Post("https://other.example/v1", egress.url).made()


def test_a_proxy_gets_requests_to_http_itself():
    heads = []

    def behave(connection: socket, server: Hostile) -> None:
        data = b""
        while b"{}" not in data:
            data += receive(connection)
        heads.append(data)
        connection.sendall(KEPT)

    with Hostile(behave).running() as server:
        through = f"http://user:p%40ss@127.0.0.1:{server.port}"
        url = "http://model.example:8080/v1?a=b"
        assert Post(url, through).made() == [b"200 ok"]
    start = b"POST http://model.example:8080/v1?a=b HTTP/1.1\r\nHost: model.example:8080\r\n"
    assert heads[0].startswith(start)
    assert LOGIN.encode() in heads[0]

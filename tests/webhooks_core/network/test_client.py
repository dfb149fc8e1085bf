"""The client whose answers are read in parts: framing, limits, kept connections, proxies."""

import asyncio
import gzip
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from socket import socket

import pytest

from tests.egress import LOGIN, EgressProxy
from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    CHUNKED,
    OK,
    Hostile,
    answering,
    answers_once,
    receive,
    server_side,
)
from webhooks_core.network.client import HttpClient
from webhooks_core.network.errors import NotHttpError, ProxyRefusedError

BODY = bytes(range(256)) * 2000
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


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNKED, b"7d000\r\n", BODY, b"\r\n0\r\nTrailer: 1\r\n\r\n"],
        [OK, b"\r\n", BODY],  # as far as the connection
        [OK, b"content-encoding: GZIP\r\n\r\n", PACKED],
    ],
)  # fmt: skip
def test_a_body_in_any_coding_is_whole(parts):
    assert answer_of(answering(*parts)) == b"200 " + BODY


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([OK, LENGTH % 10, b"\r\nshort"], ConnectionResetError),
        ([CHUNKED, b"nonsense\r\n"], NotHttpError),
        ([OK, b"Content-Encoding: br\r\n\r\nx"], NotHttpError),
        ([OK, b"Content-Encoding: gzip\r\n\r\nnonsense"], NotHttpError),
        ([OK, LENGTH % 50, b"Content-Encoding: gzip\r\n\r\n", PACKED[:50]], NotHttpError),
    ],
)  # fmt: skip
def test_what_is_cut_or_cannot_be_unpacked_is_an_error(parts, error):
    with pytest.raises(error):
        answer_of(answering(*parts))


def test_a_small_body_that_unpacks_to_a_large_one_comes_in_small_parts():
    bomb = gzip.compress(b"\0" * 30_000_000)
    behave = answering(OK, b"Content-Encoding: gzip\r\n\r\n", bomb)
    assert len(answer_of(behave)) == 30_000_004


def keeping(answer: bytes, *, starts: bytes = b"") -> Callable[[socket, Hostile], None]:
    def behave(connection: socket, server: Hostile) -> None:
        for _ in repeat(None):
            data = receive(connection)
            while not data.endswith(b"{}"):
                data += receive(connection)
            if not data.startswith(starts):
                raise ConnectionError
            server.requests += 1
            connection.sendall(answer)

    return behave


def test_a_request_is_repeated_once_if_a_kept_connection_ends_without_an_answer():
    with Hostile(answers_once).running() as server:
        assert Post(server.url).made(2) == [b"204 "] * 2
    assert server.accepted == 2


@pytest.fixture
def tls(authority):
    return server_side(authority.issue_cert("127.0.0.1", "model.example"))


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
        Hostile(keeping(KEPT, starts=b"POST /v1 HTTP/1.1"), tls).running() as server,
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

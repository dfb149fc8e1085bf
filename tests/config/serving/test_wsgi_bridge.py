"""Synchronous Django behind the ASGI server: what arrives, what comes back, who waits."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import requests

from config.serving import wsgi_bridge
from tests.config.serving.servers import bridged
from tests.connections import connected
from tests.running import PATIENCE_S, until

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
UNFINISHED = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\n"


class Application:
    """A WSGI application that notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.closed = 0
        self.body = b"hello"
        self.parts: list[bytes] = []
        self.gate: threading.Event | None = None

    def __call__(self, environ, start_response) -> "Application":
        self.threads.add(threading.current_thread().name)
        asked = {key: value for key, value in environ.items() if key.isupper()}
        self.calls.append(asked | {"body": environ["wsgi.input"].read()})
        if self.gate is not None:
            self.gate.wait(PATIENCE_S)
        start_response("201 Created", [("X-Answer", "yes"), ("X-Answer", "twice")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        parts = self.parts  # as they are when the response begins
        yield self.body
        yield from parts

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def url(application) -> Iterator[str]:
    with bridged(application, threads=2) as url:
        yield url


def test_a_request_arrives_as_pep_3333_says(application, url):
    answer = requests.post(
        url + "/grüße/%2Fx?a=%20b",
        data=b"body",
        headers={"X-One": "1", "Content-Type": "text/plain", "X_Tenant_Id": "forged"},
        timeout=PATIENCE_S,
    )
    (call,) = application.calls
    assert call["REQUEST_METHOD"] == "POST"
    assert call["PATH_INFO"].encode("latin-1").decode() == "/grüße//x"
    assert call["QUERY_STRING"] == "a=%20b"
    assert (call["CONTENT_TYPE"], call["CONTENT_LENGTH"]) == ("text/plain", "4")
    assert (call["HTTP_X_ONE"], call["body"]) == ("1", b"body")
    assert call["REMOTE_ADDR"] == "127.0.0.1"
    assert "HTTP_X_TENANT_ID" not in call
    assert (answer.status_code, answer.content) == (201, b"hello")
    assert answer.headers["X-Answer"] == "yes, twice"
    assert application.closed == 1


def test_headers_given_twice_are_joined(application, url):
    with connected(url) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nX-A: 2\r\n\r\n")
        client.recv(1000)
    assert application.calls[0]["HTTP_X_A"] == "1,2"


@pytest.mark.parametrize("size", [0, 10, 2_000_000])
def test_bodies_arrive_whole_with_or_without_a_length(application, url, size):
    body = b"x" * size
    requests.post(url, data=body, timeout=PATIENCE_S)
    requests.post(url, data=iter([body[:5], body[5:]]), timeout=PATIENCE_S)
    assert [call["body"] == body for call in application.calls] == [True, True]
    assert {call["CONTENT_LENGTH"] for call in application.calls} == {str(size)}


def test_the_application_gets_the_length_of_a_body_that_is_too_large(application):
    with bridged(application, largest=10) as url:
        requests.post(url, data=b"x" * 11, timeout=PATIENCE_S)
        requests.post(url, data=iter([b"x" * 6, b"x" * 6]), timeout=PATIENCE_S)
    assert [call["CONTENT_LENGTH"] for call in application.calls] == ["11", "12"]


def test_large_responses_arrive_in_parts_and_complete(application, url):
    application.body, application.parts = b"a" * 100_000, [b"b" * 300_000, b"c"]
    answer = requests.get(url, timeout=PATIENCE_S)
    assert answer.content == application.body + b"".join(application.parts)
    until(lambda: application.closed == 1, "the end of the call")


def test_an_application_that_fails_is_500_and_frees_its_thread(application, url):
    application.parts = [5]
    assert requests.get(url, timeout=PATIENCE_S).status_code == 500
    assert application.closed == 1
    application.parts = []
    assert requests.get(url, timeout=PATIENCE_S).status_code == 201


def test_a_client_that_sends_slowly_occupies_no_thread(application, url):
    slow = [connected(url) for _ in range(5)]
    for client in slow:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
    assert requests.get(url, timeout=PATIENCE_S).status_code == 201
    assert len(application.calls) == 1
    for client in slow:
        client.close()


def test_a_client_that_reads_a_complete_response_slowly_occupies_no_thread(
    application, url
):
    application.body = b"x" * 20_000_000
    application.streaming = False  # as Django marks a response that is in memory
    with ExitStack() as stack:
        for _ in range(3):  # there are two threads
            client = stack.enter_context(connected(url))
            client.sendall(REQUEST)
            assert client.recv(1)  # and no more
        application.body = b"hello"
        assert requests.get(url, timeout=PATIENCE_S).content == b"hello"


def test_clients_that_do_not_read_a_streaming_response_occupy_no_thread(
    application, url
):
    application.body, application.parts = b"x" * 100_000, [b"x" * 100_000] * 500
    with ExitStack() as stack:
        for _ in range(3):  # there are two threads
            client = stack.enter_context(connected(url))
            client.sendall(REQUEST * 4)
            assert client.recv(1)  # and no more
        application.parts = []
        assert len(requests.get(url, timeout=PATIENCE_S).content) == 100_000
        until(lambda: application.closed == 1, "the end of this response alone")
    until(lambda: application.closed >= 4, "the end of the responses that were left")


def test_a_client_that_takes_too_long_to_read_is_disconnected(
    application, url, monkeypatch
):
    monkeypatch.setattr(wsgi_bridge, "RESPONSE_S", 0.2)
    application.parts = [b"x" * 100_000] * 500
    with connected(url) as client:
        client.sendall(REQUEST)
        until(lambda: application.closed, "the end of the response")


def test_a_request_that_does_not_end_is_408(application, url, monkeypatch):
    monkeypatch.setattr(wsgi_bridge, "RECEIVE_S", 0.2)
    with connected(url) as client:
        client.sendall(UNFINISHED)
        assert client.recv(1000).startswith(b"HTTP/1.1 408")
    assert application.calls == []

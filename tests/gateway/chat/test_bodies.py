"""Bodies that are refused or taken, and failures that nobody foresaw."""

from __future__ import annotations

import asyncio
import gzip
import socket
from dataclasses import replace

import pytest

from gateway import keys
from gateway.chat import asgi, service
from gateway.chat.routing import Router
from tests.gateway.chat.core.test_errors import INTERNAL, REQUEST_ID, status_and_detail
from tests.gateway.chat.harness import ASGI, SHORT_CUT
from tests.gateway.chat.mock_upstream import COMPLETION, NEVER, answers
from tests.gateway.chat.streaming.test_leaving import raw_request
from tests.running import PATIENCE_S
from webhooks_core.web import bearer


def test_another_media_type_is_refused(gateway, upstream):
    response = gateway.post(b"x", headers={**REQUEST_ID, "Content-Type": "text/plain"})
    assert status_and_detail(response)[0] == 415
    assert upstream.requests == []


@pytest.mark.parametrize("path", ["/v2/chat/completions", "/v1/embeddings"])
def test_an_encoded_body_is_refused(gateway, upstream, path):
    body = gzip.compress(b'{"model": "small"}')
    response = gateway.post(body, path=path, headers={"Content-Encoding": "gzip"})
    assert response.status_code == 415
    assert b"Content-Encoding" in response.content
    assert upstream.requests == []


def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(gateway, upstream):
    upstream.script = answers(COMPLETION)
    largest = b'{"model": "small"}'.ljust(20 * 1024 * 1024)
    fits = gateway.post(largest)
    too_large = gateway.post(largest + b" ", headers=REQUEST_ID)
    assert fits.status_code == 200
    assert status_and_detail(too_large)[0] == 413


def test_whether_messages_are_missing_is_for_the_upstream_to_judge(gateway, upstream):
    upstream.script = answers(COMPLETION)
    assert gateway.post(b'{"model": "small"}').status_code == 200
    assert upstream.requests[0].json == {"model": "upstream-model"}


# Under WSGI, Django takes a body without a length for none.
@pytest.mark.parametrize("way", [SHORT_CUT, ASGI], indirect=True)
def test_a_body_without_a_length_is_counted_as_it_comes(gateway):
    def parts():
        for _ in range(21):
            yield b" " * 1024 * 1024

    assert status_and_detail(gateway.post(parts(), headers=REQUEST_ID))[0] == 413


@pytest.mark.parametrize("part", ["half", "none"])
def test_a_body_that_does_not_end_is_a_bad_request(
    gateway, upstream, monkeypatch, part
):
    monkeypatch.setattr(asgi, "RECEIVE_S", 0.2)
    request = raw_request().replace(b"Content-Length: ", b"Content-Length: 9")
    if part == "none":
        request = request.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.settimeout(PATIENCE_S)
        client.sendall(request)
        response = b"".join(iter(lambda: client.recv(10_000), b""))
    assert response.startswith(b"HTTP/1.1 400")
    assert response.endswith(b'{"detail":"The body took too long to arrive."}')
    assert upstream.requests == []


def test_an_unforeseen_failure_tells_nothing(gateway, upstream, monkeypatch):
    def fail():
        raise RuntimeError("a bug with a secret")

    monkeypatch.setattr(gateway.known, "endpoints", fail)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (500, INTERNAL)


@pytest.mark.parametrize("stream", [False, True])
def test_an_unforeseen_failure_of_a_call_tells_nothing_and_is_recorded(
    gateway, monkeypatch, stream
):
    def fail(*_: object) -> None:
        raise RuntimeError("a bug with a secret")

    monkeypatch.setattr(Router, "order", fail)
    assert status_and_detail(gateway.post(headers=REQUEST_ID, stream=stream)) == (
        500,
        INTERNAL,
    )
    assert [item.status for item in gateway.kept.ended] == [500]
    assert gateway.limits.running == 0


def test_a_database_that_hangs_is_as_good_as_away(gateway, monkeypatch):
    async def hang(_: object) -> None:
        await asyncio.sleep(NEVER)

    monkeypatch.setattr(service, "LOOK_UP_S", 0.05)
    gateway.service = replace(gateway.service, in_thread=hang)
    unknown = {"Authorization": f"Bearer {bearer.make(keys.PREFIX)}"}

    response = gateway.post(headers={**REQUEST_ID, **unknown})

    assert status_and_detail(response)[0] == 503
    assert int(response.headers["Retry-After"]) > 0

"""Clients that leave or do not read, servers that stop: nothing is left behind."""

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from gateway.chat import asgi, streams
from gateway.chat.http_messages import ChatResponse
from gateway.chat.upstreams import http
from tests.gateway.chat.harness import (
    V2,
    raw_request,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    NEVER,
    STREAM,
    WHOLE_STREAM,
    chunk,
    event,
    head,
    in_chunks,
    sends,
)

SCOPE = {"method": "POST", "path": V2, "headers": []}


@pytest.mark.parametrize("how", [socket.SHUT_RDWR, socket.SHUT_WR])
@pytest.mark.parametrize(
    ("script", "fields", "seen"),
    [
        pytest.param(sends(NEVER), {}, b"", id="while the answer is made"),
        pytest.param(sends(NEVER), {"stream": True}, b"", id="before the first chunk"),
        pytest.param(sends(STREAM[0], NEVER), {"stream": True}, b"Hel", id="between two chunks"),
    ],
)  # fmt: skip
def test_a_client_that_leaves_ends_the_upstreams_call(
    gateway, upstream, script, fields, seen, how
):
    upstream.script = script
    with gateway.connected(raw_request(**fields)) as client:
        assert gateway.settled(lambda: upstream.requests)
        received = b""
        while seen not in received:
            received += client.recv(10_000)
        client.shutdown(how)
        assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.recorded().status == 499
    assert gateway.settled(lambda: upstream.open == 0)


@pytest.mark.parametrize(
    "parts", [[part for _ in range(500) for part in (STREAM[0], 0.02)], [STREAM[0]] * 5000]
)  # fmt: skip
def test_a_client_that_leaves_amid_chunks_ends_the_upstreams_call(
    gateway, upstream, parts
):
    upstream.script = sends(*parts, NEVER)
    with gateway.connected(raw_request(stream=True)) as client:
        client.recv(1000)
    assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.recorded().status == 499


def test_a_client_that_leaves_in_the_middle_of_its_request_is_forgotten(
    gateway, upstream
):
    with gateway.connected(raw_request()[:-10]):
        assert gateway.settled(gateway.loop.tasks)
    assert gateway.is_idle()
    assert upstream.requests == gateway.kept.ended == []


@pytest.mark.parametrize("refused", ["head", "part"])
@pytest.mark.parametrize("error", [RuntimeError("closed"), ConnectionResetError()])
def test_a_server_that_cannot_send_any_more_means_that_the_client_has_gone(
    refused, error
):
    ended = []

    async def rest():
        try:
            while True:
                yield b"part"
        finally:
            ended.append("stream")

    async def run() -> None:
        stream = rest()
        response = ChatResponse(200, {}, await anext(stream), stream)
        service: Any = SimpleNamespace(answer=AsyncMock(return_value=response))
        failures = [error] if refused == "head" else [None, None, error]
        send = AsyncMock(side_effect=failures)
        await asgi.respond(service, SCOPE, {}, AsyncMock(), send)
        assert send.await_count == len(failures)
        assert ended == ["stream"]

    asyncio.run(run())


def test_a_cancellation_that_is_not_for_the_clients_sake_goes_on():
    async def run() -> None:
        service: Any = SimpleNamespace(answer=lambda _: asyncio.Event().wait())
        responding = asgi.respond(service, SCOPE, {}, AsyncMock(), AsyncMock())
        task = asyncio.create_task(responding)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_slow_client_slows_the_upstream_down(gateway, upstream):
    big = in_chunks(event(chunk("x" * 60_000)))
    sent = []

    async def count(request):
        request.writer.write(head(Transfer_Encoding="chunked"))
        for _ in range(2000):
            request.writer.write(big)
            await request.writer.drain()
            sent.append(1)

    upstream.script = count
    with gateway.connected(raw_request(stream=True)):
        before = -1
        while before < len(sent):
            before = len(sent)
            time.sleep(0.5)
        # 120 MB are to be had; what stands in buffers of the kernel and ours is a fraction.
        assert before < 400


def test_a_client_that_never_reads_is_given_up(gateway, upstream, monkeypatch):
    monkeypatch.setattr(asgi, "STALL_S", 0.5)
    upstream.script = sends(*[event(chunk("x" * 60_000))] * 2000)
    with gateway.connected(raw_request(stream=True)):
        assert gateway.settled(lambda: upstream.hung_up)
        assert gateway.recorded().status == 499
        assert gateway.is_idle()


def test_an_upstream_that_goes_on_after_done_is_left(gateway, upstream, monkeypatch):
    monkeypatch.setattr(streams, "CLOSING_S", 0.1)
    upstream.script = sends(*WHOLE_STREAM, NEVER)
    assert text_of(gateway.stream()) == "Hello"
    assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.recorded().status == 200


def test_an_error_body_that_never_ends_is_not_waited_for(
    gateway, upstream, monkeypatch
):
    monkeypatch.setattr(http, "ERROR_BODY_S", 0.1)

    async def drip(request):
        request.writer.write(head(400, Content_Length="100") + b"{")
        await asyncio.sleep(NEVER)

    upstream.script = drip
    response = gateway.post()
    assert response.status_code == 400
    assert response.json() == {"detail": "The upstream refused the request."}

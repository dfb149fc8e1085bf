"""When a request is sent a second time: only if nobody can have worked on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.chat.upstreams import http
from tests.gateway.chat.harness import STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    NEVER,
    answers,
    greeting,
    head,
)
from tests.running import PATIENCE_S


def closes(*parts: bytes, resets: bool = False) -> Any:
    """Send what is given, and end the connection."""

    async def script(request: Any) -> None:
        for part in parts:
            request.writer.write(part)
            await asyncio.sleep(0.01)
        if resets:
            request.writer.transport.abort()
        else:
            request.writer.close()

    return script


@pytest.fixture
def kept(gateway, upstream) -> Any:
    """A connection that was used once and is kept."""
    upstream.script = answers(COMPLETION)
    assert gateway.post().status_code == 200
    upstream.requests.clear()
    return upstream


@STREAM_OR_NOT
@pytest.mark.parametrize(
    ("_case", "ending"),
    [
        ("worked on, then closed", closes()),
        ("worked on, then reset", closes(resets=True)),
        ("one byte", closes(b"H")),
        ("half a head", closes(b"HTTP/1.1 200 OK\r\nContent-")),
        ("a hint before the answer", closes(head(103))),
        ("a head", closes(head(Content_Length="5"))),
    ],
)
def test_a_request_that_was_worked_on_is_not_sent_again(
    gateway, kept, monkeypatch, stream, _case, ending
):
    # Without a byte only the time tells that there was work: here, any time is enough.
    seen_s = 0.0 if _case.startswith("worked on") else PATIENCE_S
    monkeypatch.setattr(http, "CLOSE_SEEN_S", seen_s)
    kept.script = ending
    assert gateway.post(stream=stream).status_code == 500
    assert (len(kept.requests), kept.connections) == (1, 1)


@STREAM_OR_NOT
@pytest.mark.parametrize("resets", [False, True])
def test_a_request_on_a_connection_that_was_closed_while_idle_is_sent_again(
    gateway, kept, monkeypatch, stream, resets
):
    # However slow this machine is.
    monkeypatch.setattr(http, "CLOSE_SEEN_S", PATIENCE_S)
    close = closes(resets=resets)

    async def script(request: Any) -> None:
        kept.script = greeting(stream=stream)
        await close(request)

    kept.script = script
    assert gateway.post(stream=stream).status_code == 200
    assert (len(kept.requests), kept.connections) == (2, 2)


@pytest.mark.parametrize(
    ("_case", "stale"),
    [
        ("an answer", head(Content_Length="2") + b"{}"),
        ("half an answer", head(Content_Length="2") + b"{"),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-"),
        ("no answer at all", b"hello"),
        ("a limit of idle time", head(408, Content_Length="0")),
    ],
)
def test_what_nobody_asked_for_answers_no_request(gateway, upstream, _case, stale):
    async def script(request: Any) -> None:
        await answers({**COMPLETION, "id": "first"})(request)
        upstream.script = answers({**COMPLETION, "id": "second"})
        await is_answered.wait()
        request.writer.write(stale)
        await asyncio.sleep(NEVER)

    is_answered = asyncio.Event()
    upstream.script = script
    assert gateway.post().json()["id"] == "first"
    upstream.loop.set(is_answered)
    assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.post().json()["id"] == "second"
    assert upstream.connections == 2


def test_a_large_request_that_is_refused_early_is_not_sent_again(gateway, kept):
    kept.script = closes(head(413, Content_Length="0"))
    assert gateway.post(padding="x" * 3_000_000).status_code == 400
    assert len(kept.requests) == 1


def test_a_request_on_a_fresh_connection_is_not_sent_again(gateway, upstream):
    upstream.script = closes()
    assert gateway.post().status_code == 500
    assert len(upstream.requests) == 1

"""Comments in silent streams: on every way to the service, between events, and no events themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai
import pytest

from gateway.chat.streaming.keep_alive import COMMENT
from tests.gateway.chat.harness import (
    ASGI,
    IDENTITY,
    MESSAGES,
    SHORT_CUT,
    WSGI,
    Gateway,
    events_of,
)
from tests.gateway.chat.mock_upstream import (
    DONE,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    chunk,
    event,
    sends,
)
from tests.running import PATIENCE_S

V1, V2 = "/v1/chat/completions", "/v2/chat/completions"
PATHS = pytest.mark.parametrize("path", [V1, V2])
every_way = pytest.mark.parametrize("way", [SHORT_CUT, ASGI, WSGI], indirect=True)


@pytest.fixture(autouse=True)
def _short(settings) -> None:
    settings.CHAT_KEEPALIVE_S = 0.02


@contextmanager
def opened(gateway: Gateway, path: str = V2) -> Iterator[Iterator[bytes]]:
    """Yield the parts of a stream as they come."""
    fields = {"model": "small", "messages": MESSAGES, "stream": True}
    with (
        httpx.Client(headers=IDENTITY, timeout=PATIENCE_S) as client,
        client.stream("POST", gateway.url + path, json=fields) as response,
    ):
        yield response.iter_raw()


def bytes_until(parts: Iterator[bytes], text: bytes, times: int = 1) -> bytes:
    """Return what a response sends up to the first part after so many occurrences."""
    read = b""
    while read.count(text) < times:
        read += next(parts)
    return read


@every_way
@PATHS
def test_a_silent_stream_sends_comments_and_goes_on(gateway, upstream, path):
    wait = asyncio.Event()
    upstream.script = sends(STREAM[0], wait, *STREAM[1:], event(USAGE_CHUNK), DONE)

    with opened(gateway, path) as parts:
        body = bytes_until(parts, COMMENT, times=3)
        upstream.loop.set(wait)
        body += b"".join(parts)

    events = events_of(body.replace(COMMENT, b""))
    texts = [
        choice["delta"].get("content", "")
        for item in events
        if item != "[DONE]"
        for choice in item["choices"]
    ]
    assert "".join(texts) == "Hello"
    assert (events[-1] == "[DONE]") == (path == V1)
    assert gateway.settled(lambda: gateway.kept.ended)
    (context,) = gateway.kept.ended
    assert (context.status, context.error_status) == (200, 0)
    assert context.usage.completion_tokens == USAGE["completion_tokens"]


@every_way
def test_a_comment_never_stands_inside_an_event(gateway, upstream):
    wait = asyncio.Event()
    large = [event(chunk(letter * 2**20)) for letter in "abcd"]
    half = len(large[3]) // 2
    upstream.script = sends(
        *large[:3], large[3][:half], wait, large[3][half:], STREAM[2], DONE
    )

    with opened(gateway) as parts:
        body = bytes_until(parts, COMMENT)
        upstream.loop.set(wait)
        body += b"".join(parts)

    events = events_of(body.replace(COMMENT, b""))
    sizes = [len(item["choices"][0]["delta"].get("content", "")) for item in events]
    assert sizes == [2**20] * 4 + [0]
    for line in body.split(b"\n\n")[:-1]:
        assert line + b"\n\n" == COMMENT or json.loads(line.removeprefix(b"data: "))


@every_way
def test_a_client_that_leaves_a_silent_stream_has_left(gateway, upstream):
    upstream.script = sends(STREAM[0], asyncio.Event())
    with opened(gateway) as parts:
        bytes_until(parts, COMMENT)
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].status == 499
    assert gateway.settled(lambda: upstream.hung_up)


@every_way
def test_there_are_no_comments_without_an_interval(gateway, upstream, settings):
    settings.CHAT_KEEPALIVE_S = 0
    upstream.script = sends(STREAM[0], 0.2, *STREAM[1:], DONE)
    with opened(gateway) as parts:
        assert len(events_of(b"".join(parts))) == 3


@every_way
def test_a_failure_after_silence_is_still_the_last_event(gateway, upstream):
    wait = asyncio.Event()
    upstream.script = sends(STREAM[0], wait, None)
    with opened(gateway) as parts:
        body = bytes_until(parts, COMMENT)
        upstream.loop.set(wait)
        body += b"".join(parts)
    assert events_of(body.replace(COMMENT, b""))[-1]["error"]["status_code"] == 500


def test_comments_do_not_extend_the_time_that_an_upstream_may_be_silent(
    gateway, upstream
):
    upstream.script = sends(STREAM[0], asyncio.Event())
    with opened(gateway) as parts:
        body = bytes_until(parts, COMMENT, times=2)
        gateway.pass_time()
        body += b"".join(parts)
    assert events_of(body.replace(COMMENT, b""))[-1]["error"]["status_code"] == 500


def test_clients_of_openai_skip_comments(gateway, upstream):
    upstream.script = sends(STREAM[0], 0.2, *STREAM[1:], DONE)
    with openai.OpenAI(
        base_url=f"{gateway.url}/v1",
        api_key="x",
        default_headers={**IDENTITY, "Authorization": ""},
        max_retries=0,
    ) as client:
        stream = client.chat.completions.create(
            model="small", stream=True, messages=[{"role": "user", "content": "Hi"}]
        )
        texts = [part.choices[0].delta.content or "" for part in stream]
    assert "".join(texts) == "Hello"

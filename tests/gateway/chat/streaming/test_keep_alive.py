"""Comments in silent streams: between events, and no events themselves."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.chat.sse import COMMENT
from tests.gateway.chat.harness import (
    PATHS,
    V1,
    events_of,
    text_of,
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
from tests.gateway.chat.upstreams.anthropic_events import TEXT_STREAM, named, stopped


@pytest.fixture(autouse=True)
def _short(settings) -> None:
    settings.CHAT_KEEPALIVE_S = 0.02


def bytes_until(
    parts: Iterator[bytes], times: int = 1, comment: bytes = COMMENT
) -> bytes:
    """Return what a response sends up to the first part after so many comments."""
    read = b""
    while read.count(comment) < times:
        read += next(parts)
    return read


def body_around(
    gateway, upstream, before, after, *, path: str, times: int = 1
) -> bytes:
    """Return a stream whose upstream is silent until some comments have been sent."""
    wait = asyncio.Event()
    upstream.script = sends(*before, wait, *after)
    with gateway.opened(path) as response:
        parts = response.iter_content(None)
        begun = bytes_until(parts, times)
        upstream.loop.set(wait)
        return begun + b"".join(parts)


@PATHS
def test_a_silent_stream_sends_comments_and_goes_on(gateway, upstream, path):
    after = (*STREAM[1:], event(USAGE_CHUNK), DONE)
    body = body_around(gateway, upstream, STREAM[:1], after, path=path, times=3)
    events = events_of(body.replace(COMMENT, b""))
    assert text_of(events) == "Hello"
    assert (events[-1] == "[DONE]") == (path == V1)
    context = gateway.recorded()
    assert (context.status, context.error_status) == (200, 0)
    assert context.usage.completion_tokens == USAGE["completion_tokens"]


@PATHS
def test_a_comment_never_stands_inside_an_event(gateway, upstream, path):
    large = [event(chunk(letter * 2**20)) for letter in "abcd"]
    before, after = [*large[:3], large[3][:1000]], [large[3][1000:], STREAM[2]]
    body = body_around(gateway, upstream, before, after, path=path)
    events = events_of(body.replace(COMMENT, b""))
    assert len(text_of(events)) == 4 * 2**20
    assert all(
        line + b"\n\n" == COMMENT or line.startswith(b"data: ")
        for line in body.split(b"\n\n")[:-1]
    )


def test_there_are_no_comments_without_an_interval(gateway, upstream, settings):
    settings.CHAT_KEEPALIVE_S = 0
    upstream.script = sends(STREAM[0], 0.2, *STREAM[1:], DONE)
    assert len(gateway.stream()) == 3


def test_comments_do_not_extend_the_time_that_an_upstream_may_be_silent(
    gateway, upstream
):
    upstream.script = sends(STREAM[0], asyncio.Event())
    with gateway.opened() as response:
        parts = response.iter_content(None)
        body = bytes_until(parts, times=2)
        gateway.pass_time()
        body += b"".join(parts)
    assert events_of(body.replace(COMMENT, b""))[-1]["error"]["status_code"] == 500


def test_a_silent_stream_of_messages_sends_pings(gateway, claude, upstream):
    wait, ping = asyncio.Event(), b'event: ping\ndata: {"type": "ping"}\n\n'
    events = [*map(named, (*TEXT_STREAM, *stopped("end_turn")))]
    start, text = events[0], events[1]
    upstream.script = sends(start, text[:20], wait, text[20:], *events[2:])
    with gateway.opened("/v1/messages", model="claude") as response:
        parts = response.iter_content(None)
        body = bytes_until(parts, 2, ping)
        upstream.loop.set(wait)
        body += b"".join(parts)
    whole = b"".join(events).replace(b'"claude-there"', b'"claude"')
    # The API sends one of its own, too.
    assert body.replace(ping, b"") == whole.replace(ping, b"")

"""Upstreams that fail, are slow or cannot be reached: what a client gets, and which target is next."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trustme
from structlog.testing import capture_logs

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import (
    STREAM_OR_NOT,
    Gateway,
    running,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    NEVER,
    STREAM,
    WHOLE_STREAM,
    MockUpstream,
    answers,
    chunk,
    event,
    greeting,
    head,
    sends,
)
from tests.running import PATIENCE_S


@pytest.fixture
def other(loops) -> Iterator[MockUpstream]:
    upstream = MockUpstream(loops[1], script=answers(COMPLETION))
    upstream.start()
    yield upstream
    upstream.stop()


def declare_both(gateway, upstream, other, **fields: Any) -> tuple[Target, Target]:
    """Declare an endpoint that calls `upstream` first, then `other`."""
    gateway.router.chance = iter([0.9, 0.1]).__next__
    targets = Target(upstream.url, "a"), Target(other.url, "b")
    gateway.declare(targets=targets, **fields)
    return targets


# ── Time-outs ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limit", "stream"), [("first_byte_s", True), ("total_s", True), ("total_s", False)]
)
@pytest.mark.parametrize(
    "begins", [b"", head(Transfer_Encoding="chunked"), head(Content_Length="100") + b"{"]
)  # fmt: skip
def test_an_upstream_that_does_not_answer_in_time_has_failed(
    gateway, upstream, limit, stream, begins
):
    gateway.declare(timeouts={limit: 0.2})

    async def silent(request):
        request.writer.write(begins)
        await asyncio.sleep(NEVER)

    upstream.script = silent
    assert gateway.post(stream=stream).status_code == 500
    assert gateway.settled(lambda: upstream.hung_up)


def test_only_the_total_time_limits_a_synchronous_answer(gateway, upstream):
    gateway.declare(timeouts={"first_byte_s": 0.1, "idle_s": 0.1})
    body = json.dumps(COMPLETION).encode()

    async def slow(request):
        await asyncio.sleep(0.3)
        request.writer.write(head(Content_Length=str(len(body))) + body[:10])
        await asyncio.sleep(0.3)
        request.writer.write(body[10:])

    upstream.script = slow
    assert gateway.post().json() == {**COMPLETION, "model": "small"}


@STREAM_OR_NOT
def test_a_target_that_uses_up_the_total_time_has_failed(gateway, upstream, stream):
    targets = declare_both(gateway, upstream, upstream, timeouts={"total_s": 0.2})
    entry = gateway.known["small"]
    upstream.script = sends(NEVER)
    for _ in range(2):
        gateway.router.failed(entry, targets[0])

    assert gateway.post(stream=stream).status_code == 500

    assert gateway.router.is_ejected(entry, targets[0])
    assert not gateway.router.is_ejected(entry, targets[1])
    assert gateway.settled(lambda: upstream.hung_up)


@pytest.mark.parametrize("limit", ["idle_s", "total_s"])
def test_a_stream_that_stalls_ends_with_an_error_chunk(gateway, upstream, limit):
    others = dict.fromkeys(("first_byte_s", "idle_s", "total_s"), NEVER)
    gateway.declare(timeouts={**others, limit: PATIENCE_S})
    upstream.script = sends(STREAM[0], NEVER)

    with gateway.events() as events:
        assert text_of([next(events)]) == "Hel"
        gateway.pass_time()
        (last,) = events

    assert last["error"]["status_code"] == 500
    assert gateway.settled(lambda: upstream.hung_up)


def test_a_slow_stream_that_keeps_coming_is_not_idle(gateway, upstream):
    idle_s = 4 * PATIENCE_S
    gateway.declare(timeouts={"idle_s": idle_s, "total_s": None})
    goes_on = [asyncio.Event() for _ in range(4)]
    parts = [part for wait in goes_on for part in (STREAM[0], wait)]
    upstream.script = sends(*parts, STREAM[2], DONE)
    with gateway.events() as events:
        begun = []
        for wait in goes_on:
            begun.append(next(events))
            gateway.loop.skip(idle_s / 2)
            upstream.loop.set(wait)
        assert text_of([*begun, *events]) == "Hel" * 4


# ── Connections ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_known", [False, True])
def test_a_certificate_is_of_a_known_authority_or_the_operators_own(
    loops, settings, tmp_path, is_known
):
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if is_known:
        settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
        authority.cert_pem.write_to_path(settings.EXTRA_CA_FILE)
    secure = MockUpstream(loops[1], script=answers(COMPLETION))
    secure.start(ssl=context)
    with running(Gateway(loops[0], secure)) as gateway, capture_logs() as logs:
        target = Target(secure.url.replace("http:", "https:"), "x")
        gateway.declare(targets=(target,))
        assert gateway.post().status_code == (200 if is_known else 500)
    secure.stop()
    assert len(secure.requests) == is_known
    has_reason = "unable to get local issuer certificate" in str(logs)
    assert has_reason != is_known


def test_connections_are_used_again_after_answers_and_streams(gateway, upstream):
    for _ in range(3):
        upstream.script = answers(COMPLETION)
        gateway.post()
        upstream.script = sends(*WHOLE_STREAM)
        gateway.stream()
    assert upstream.connections == 1


# ── Several targets ─────────────────────────────────────────────────────────────────


@STREAM_OR_NOT
@pytest.mark.parametrize(
    ("_case", "script"),
    [
        *((str(status), answers({}, status)) for status in (401, 429, 503)),
        ("nonsense", answers(b"x")),
        ("vLLM's failure", answers({"object": "error", "message": "secret", "code": 500})),
        ("Cloudflare's", answers({"success": False, "errors": [{"message": "secret"}]})),
        ("llama.cpp's", sends(b"error: {}\n\n", DONE)),
        ("OpenRouter's", sends(b": OPENROUTER PROCESSING\n\n", event(chunk("", "error")))),
        ("no chunk", sends(DONE)),
        ("an error first", sends(event({"error": "secret"}), DONE)),
    ],
)  # fmt: skip
def test_the_next_target_answers_for_one_that_fails(
    gateway, upstream, other, stream, _case, script
):
    upstream.script = script
    other.script = greeting(stream=stream)
    targets = declare_both(gateway, upstream, other)

    assert gateway.post(stream=stream).status_code == 200
    assert (len(upstream.requests), len(other.requests)) == (1, 1)
    assert other.requests[0].json["model"] == "b"
    assert gateway.kept.ended[0].target == targets[1]


def test_a_first_chunk_that_does_not_come_is_waited_for_elsewhere(
    gateway, upstream, other
):
    upstream.script, other.script = sends(NEVER), sends(*WHOLE_STREAM)
    declare_both(gateway, upstream, other, timeouts={"total_s": NEVER})
    with ThreadPoolExecutor() as pool:
        streaming = pool.submit(gateway.stream)
        assert gateway.settled(lambda: upstream.requests)
        gateway.pass_time()
        assert text_of(streaming.result(PATIENCE_S)) == "Hello"
    assert gateway.settled(lambda: upstream.hung_up)

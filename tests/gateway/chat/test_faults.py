"""Upstreams that fail and clients that leave: what each gets, and that nothing is left behind."""

from __future__ import annotations

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
from tests.gateway.chat.harness import Gateway, running
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    NEVER,
    STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    MockUpstream,
    answers,
    chunk,
    event,
    head,
    sends,
)
from tests.running import PATIENCE_S

INTERNAL = "Internal error occurred. Our team has been notified."


def text_of(events) -> str:
    deltas = [item["choices"][0]["delta"] for item in events]
    return "".join(item.get("content", "") for item in deltas)


@pytest.fixture
def other(loops) -> Any:
    it = MockUpstream(loops[1], script=answers(COMPLETION))
    it.start()
    yield it
    it.stop()


@pytest.fixture(autouse=True)
def nothing_leaks(gateway, upstream) -> Any:
    """After every fault: no task, no running request, no connection but a kept one."""
    yield
    assert nothing_is_left(gateway, upstream)


def nothing_is_left(gateway, upstream) -> bool:
    """Whether only the server's own tasks are there, and connections that may serve again."""
    return bool(
        gateway.settled(lambda: gateway.limits.running == 0)
        and gateway.settled(lambda: gateway.loop.tasks() == 0)
        and gateway.settled(lambda: upstream.open <= 1)
    )


# ── Time-outs ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limit", "stream"), [("first_byte_s", True), ("total_s", True), ("total_s", False)]
)
@pytest.mark.parametrize("begins", [False, True])
def test_an_upstream_that_does_not_answer_in_time_has_failed(
    gateway, upstream, limit, stream, begins
):
    gateway.declare(timeouts={limit: 0.2})

    async def silent(request):
        if begins:
            request.writer.write(head(Transfer_Encoding="chunked"))
        await asyncio.sleep(NEVER)

    upstream.script = silent
    assert gateway.post(stream=stream).status_code == 500
    assert gateway.settled(lambda: upstream.hung_up)
    assert nothing_is_left(gateway, upstream)


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


@pytest.mark.parametrize("stream", [False, True])
def test_a_target_that_uses_up_the_total_time_has_failed(gateway, upstream, stream):
    gateway.router.chance = iter([0.9, 0.1]).__next__
    targets = Target(upstream.url, "a"), Target(upstream.url, "b")
    entry = gateway.declare(targets=targets, timeouts={"total_s": 0.2})
    upstream.script = sends(NEVER)
    gateway.router.failed(entry, targets[0])
    gateway.router.failed(entry, targets[0])

    assert gateway.post(stream=stream).status_code == 500

    assert gateway.router.is_ejected(entry, targets[0])
    assert not gateway.router.is_ejected(entry, targets[1])
    assert gateway.settled(lambda: upstream.hung_up)


def test_an_answer_that_stalls_in_the_middle_has_failed(gateway, upstream):
    gateway.declare(timeouts={"total_s": 0.2})

    async def stall(request):
        request.writer.write(head(Content_Length="100") + b"{")
        await asyncio.sleep(NEVER)

    upstream.script = stall
    assert gateway.post().status_code == 500
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
    assert nothing_is_left(gateway, upstream)


def test_a_slow_stream_that_keeps_coming_is_not_idle(gateway, upstream):
    idle_s = 4 * PATIENCE_S
    gateway.declare(timeouts={"idle_s": idle_s, "total_s": None})
    goes_on = [asyncio.Event() for _ in range(4)]
    parts = [part for it in goes_on for part in (STREAM[0], it)]
    upstream.script = sends(*parts, STREAM[2], DONE)
    with gateway.events() as events:
        said = []
        for it in goes_on:
            said.append(next(events))
            gateway.loop.skip(idle_s / 2)
            upstream.loop.set(it)
        assert text_of([*said, *events]) == "Hel" * 4


def test_an_upstream_that_cannot_be_connected_to_has_failed(gateway, free_port):
    target = Target(f"http://127.0.0.1:{free_port}/v1", "x")
    gateway.declare(targets=(target,))
    assert gateway.post().status_code == 500
    assert gateway.post(stream=True).json() == {"detail": INTERNAL}


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def extra_ca_file(authority, settings, tmp_path) -> None:
    settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(settings.EXTRA_CA_FILE)


@pytest.fixture
def secure(gateway, loops, authority) -> Iterator[MockUpstream]:
    """An upstream behind TLS, for which a private authority vouches."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    upstream = MockUpstream(loops[1], script=answers(COMPLETION))
    upstream.start(ssl=context)
    gateway.declare(targets=(Target(upstream.url.replace("http:", "https:"), "x"),))
    yield upstream
    upstream.stop()


def test_a_certificate_that_does_not_hold_is_a_failure_with_its_reason_in_the_log(
    gateway, secure
):
    with capture_logs() as logs:
        assert gateway.post().status_code == 500
    assert secure.requests == []
    assert "unable to get local issuer certificate" in str(logs)


def test_an_upstream_with_a_certificate_of_the_operators_authority_is_trusted(
    extra_ca_file, loops, secure
):
    with running(Gateway(loops[0], secure)) as gateway:
        target = Target(secure.url.replace("http:", "https:"), "x")
        gateway.declare(targets=(target,))
        assert gateway.post().status_code == 200


# ── Streams in odd pieces ───────────────────────────────────────────────────────────


def test_utf8_that_is_split_across_reads_arrives_whole(gateway, upstream):
    data = event(chunk("Grüße 🌊 an den Häfen"))
    raw = json.dumps(chunk("Grüße 🌊"), ensure_ascii=False).encode()
    pieces = [bytes([byte]) for byte in event(raw)]
    upstream.script = sends(*pieces, data, STREAM[2], DONE)
    assert text_of(gateway.stream()) == "Grüße 🌊Grüße 🌊 an den Häfen"


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r", b"\n"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_every_line_end_of_the_standard_is_understood(
    gateway, upstream, line_end, size
):
    text = b": hello\n\n" + b"".join(WHOLE_STREAM).replace(b"data: ", b"data:")
    text = text.replace(b"\n", line_end)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    upstream.script = sends(*pieces)
    assert text_of(gateway.stream()) == "Hello"


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_byte_order_mark_before_the_first_event_is_none_of_it(
    gateway, upstream, size
):
    text = b"\xef\xbb\xbf" + b"".join(WHOLE_STREAM)
    upstream.script = sends(*(text[at : at + size] for at in range(0, len(text), size)))
    assert text_of(gateway.stream()) == "Hello"


def test_data_over_several_lines_is_one_event(gateway, upstream):
    pretty = json.dumps(chunk("x"), indent=1).replace("\n", "\ndata: ").encode()
    upstream.script = sends(event(pretty), STREAM[2], DONE)
    assert text_of(gateway.stream()) == "x"


def test_a_chunk_of_10_mb_passes(gateway, upstream):
    upstream.script = sends(event(chunk("x" * 10_000_000)), STREAM[2], DONE)
    assert len(text_of(gateway.stream())) == 10_000_000


def test_an_event_without_end_is_cut_off(gateway, upstream):
    upstream.script = sends(STREAM[0], 0.05, b"data: ", *[b"x" * 2**20] * 20)
    assert gateway.stream()[-1]["error"]["status_code"] == 500
    assert nothing_is_left(gateway, upstream)


def test_an_answer_without_end_is_cut_off(gateway, upstream):
    upstream.script = sends(*[b" " * 2**20] * 40)
    assert gateway.post().status_code == 500


def test_what_comes_behind_done_in_one_read_is_nothing(gateway, upstream):
    upstream.script = sends(b"".join((*STREAM, DONE, STREAM[0])))
    assert text_of(gateway.stream()) == "Hello"


def test_done_alone_is_a_failure_before_the_first_chunk(gateway, upstream):
    upstream.script = sends(DONE)
    assert gateway.post(stream=True).json() == {"detail": INTERNAL}


def test_usage_without_a_finish_is_a_chunk_of_its_own(gateway, upstream):
    upstream.script = sends(STREAM[0], event(USAGE_CHUNK), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE_CHUNK["usage"]


def test_chunks_after_a_finish_are_not_lost(gateway, upstream):
    upstream.script = sends(STREAM[2], STREAM[0], STREAM[2], event(USAGE_CHUNK), DONE)
    events = gateway.stream()
    assert [item["choices"][0].get("finish_reason") for item in events] == [
        "stop",
        None,
        "stop",
    ]
    assert "usage" not in events[0]
    assert events[2]["usage"] == USAGE_CHUNK["usage"]


@pytest.mark.parametrize(
    "usage",
    [5, [], {"prompt_tokens": "9"}, {"prompt_tokens": -1}, {"prompt_tokens": True}],
)
def test_nonsense_for_usage_is_not_counted(gateway, upstream, usage):
    upstream.script = answers({**COMPLETION, "usage": usage})
    assert gateway.post().json()["usage"] == usage
    assert gateway.kept.ended[0].usage is None


# ── Connections ─────────────────────────────────────────────────────────────────────


def test_connections_are_used_again_after_answers_and_streams(gateway, upstream):
    for _ in range(3):
        upstream.script = answers(COMPLETION)
        gateway.post()
        upstream.script = sends(*WHOLE_STREAM)
        gateway.stream()
    assert upstream.connections == 1


def test_a_connection_that_the_server_closes_is_not_used_again(gateway, upstream):
    async def answer_and_close(request):
        await answers(COMPLETION)(request)
        request.writer.close()

    upstream.script = answer_and_close
    assert [gateway.post().status_code for _ in range(3)] == [200] * 3


# ── Several targets ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("_case", "script"),
    [
        ("429", answers({}, 429)),
        ("503", answers({}, 503)),
        ("401", answers({}, 401)),
        ("nonsense", answers(b"x")),
    ],
)
def test_the_next_target_answers_for_one_that_fails(
    gateway, upstream, other, stream, _case, script
):
    upstream.script = script
    other.script = sends(*WHOLE_STREAM) if stream else answers(COMPLETION)
    gateway.router.chance = iter([0.9, 0.1]).__next__
    targets = Target(upstream.url, "a"), Target(other.url, "b")
    gateway.declare(targets=targets)

    assert gateway.post(stream=stream).status_code == 200
    assert (len(upstream.requests), len(other.requests)) == (1, 1)
    assert other.requests[0].json["model"] == "b"
    assert gateway.kept.ended[0].target == targets[1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_is_not_tried_elsewhere(gateway, upstream, other, stream):
    upstream.script = other.script = answers({"error": {"message": "no"}}, 400)
    gateway.declare(targets=(Target(upstream.url, "a"), Target(other.url, "b")))
    assert gateway.post(stream=stream).json() == {"detail": "no"}
    assert len(upstream.requests) + len(other.requests) == 1


def test_nothing_is_tried_elsewhere_after_the_first_chunk(gateway, upstream, other):
    upstream.script = other.script = sends(STREAM[0], 0.05, None)
    gateway.declare(targets=(Target(upstream.url, "a"), Target(other.url, "b")))
    assert gateway.stream()[-1]["error"]["status_code"] == 500
    assert len(upstream.requests) + len(other.requests) == 1


def test_a_first_chunk_that_does_not_come_is_waited_for_elsewhere(
    gateway, upstream, other
):
    gateway.router.chance = iter([0.9, 0.1]).__next__
    upstream.script, other.script = sends(NEVER), sends(*WHOLE_STREAM)
    gateway.declare(
        targets=(Target(upstream.url, "a"), Target(other.url, "b")),
        timeouts={"total_s": NEVER},
    )
    with ThreadPoolExecutor() as pool:
        streaming = pool.submit(gateway.stream)
        assert gateway.settled(lambda: upstream.requests)
        gateway.pass_time()
        assert text_of(streaming.result(PATIENCE_S)) == "Hello"
    assert gateway.settled(lambda: upstream.hung_up)

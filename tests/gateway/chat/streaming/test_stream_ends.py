"""How streams end: what completes one, what is missing in one that failed, how long is waited."""

from typing import Any

import pytest

from gateway.chat import streams
from tests.gateway.chat.harness import PATHS, V1, text_of
from tests.gateway.chat.mock_upstream import (
    DONE,
    HEAD,
    NEVER,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    event,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    TEXT_STREAM,
    named,
    stopped,
)
from tests.running import PATIENCE_S


def said(
    index: Any, text: str, finish: str | None = None, *, key: str = "content"
) -> bytes:
    choice = {"index": index, "delta": {key: text}, "finish_reason": finish}
    return event({**HEAD, "choices": [choice]})


@PATHS
@pytest.mark.parametrize(
    ("_case", "parts"),
    [
        ("an end", STREAM),
        ("silence", (*STREAM, NEVER)),
        ("comments alone", (*STREAM, *[b": still here\n\n", 0.05] * 400)),
        ("a reset", (*STREAM, 0.05, None)),
        ("an event that is too large", (*STREAM, b"data: ", *[b"x" * 2**20] * 20)),
        ("a malformed event", (*STREAM, event(b"{"))),
        ("a malformed event in the same read", (b"".join((*STREAM, event(b"{"))),)),
        ("an error", (*STREAM, event({"error": {"message": "late", "code": 500}}))),
        ("a refusal", (*STREAM, event({"error": {"message": "late", "code": 400}}))),
    ],
)
def test_after_the_finish_reason_a_stream_is_complete(
    gateway, upstream, monkeypatch, path, _case, parts
):
    monkeypatch.setattr(streams, "USAGE_WAIT_S", 0.2)
    upstream.script = sends(*parts)

    events = [item for item in gateway.stream(path=path) if item != "[DONE]"]

    assert text_of(events) == "Hello"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    context = gateway.recorded()
    assert (context.status, context.error_status) == (200, 0)


def test_the_total_time_does_not_make_a_finished_stream_a_failure(
    gateway, upstream, monkeypatch
):
    monkeypatch.setattr(streams, "USAGE_WAIT_S", NEVER)
    gateway.declare(timeouts={"idle_s": NEVER})
    upstream.script = sends(*STREAM, NEVER)
    with gateway.events(path=V1) as events:
        begun = [next(events) for _ in STREAM]
        gateway.pass_time()
        assert all("error" not in item for item in (*begun, *events))


def test_usage_that_comes_soon_after_the_finish_reason_is_waited_for(gateway, upstream):
    upstream.script = sends(*STREAM, 0.3, event(USAGE_CHUNK), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE
    assert gateway.recorded().usage.completion_tokens == 2


@PATHS
@pytest.mark.parametrize(
    "parts",
    [
        (said(0, "a", "stop"),),
        (said(0, "a"), said(1, "b"), said(1, "c", "stop")),
        (said(0, "a", "stop"), said(0, "", "stop")),
    ],
)
def test_every_choice_that_was_asked_for_needs_its_finish_reason(
    gateway, upstream, path, parts
):
    upstream.script = sends(*parts)
    events = [item for item in gateway.stream(path=path, n=2) if item != "[DONE]"]
    assert "error" in events[-1]
    assert gateway.recorded().error_status == 500


def test_a_choice_that_goes_on_longer_than_another_is_not_cut_off(
    gateway, upstream, monkeypatch
):
    def wait_for_the_usage() -> None:
        monkeypatch.setattr(streams, "USAGE_WAIT_S", PATIENCE_S)

    monkeypatch.setattr(streams, "USAGE_WAIT_S", 0.0)
    first = said(0, "a"), said(1, "b"), said(0, "c", "stop"), 0.3
    rest = said(1, "d"), 0.3, wait_for_the_usage, said(1, "e", "stop")
    upstream.script = sends(*first, *rest, event(USAGE_CHUNK), DONE)

    events = gateway.stream(n=2)

    assert text_of(events) == "abcde"
    assert events[-1]["usage"] == USAGE
    assert sum("usage" in item for item in events) == 1


@PATHS
@pytest.mark.parametrize(
    ("kind", "n", "parts"),
    [
        ("openai", 1, (said(0, "Hello"), DONE)),
        ("openai", 1, (said(0, "Hello"), event(USAGE_CHUNK), DONE)),
        ("openai", 1, (said(0, "Hel"), said(0, "lo", ""), DONE)),
        ("openai", 2, (said(0, "Hello"), said(1, "", "stop"), DONE)),
        ("anthropic", 1, tuple(map(named, (*TEXT_STREAM[:4], *stopped("end_turn")[1:])))),
    ],
)  # fmt: skip
def test_done_without_a_finish_reason_is_complete(
    gateway, upstream, path, kind, n, parts
):
    gateway.declare(upstream=kind)
    upstream.script = sends(*parts)

    fields = {} if n == 1 else {"n": n}
    events = [item for item in gateway.stream(path=path, **fields) if item != "[DONE]"]

    assert text_of(events) == "Hello"
    assert "error" not in events[-1]
    context = gateway.recorded()
    assert context.ending == "no finish reason"
    assert (context.status, context.error_status) == (200, 0)

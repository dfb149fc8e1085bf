"""How streams end: what completes one, what is missing in one that failed, how long is waited."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat.streaming import body
from gateway.chat.streaming.transform import ChunkTransformer
from tests.gateway.chat.mock_upstream import (
    DONE,
    HEAD,
    NEVER,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    chunk,
    event,
    sends,
)
from tests.gateway.chat.test_faults import text_of
from tests.gateway.chat.upstreams.test_anthropic import (
    TEXT_STREAM,
    sends_events,
    stopped,
)
from tests.running import PATIENCE_S

V1, V2 = "/v1/chat/completions", "/v2/chat/completions"
END_OF_STREAM = pytest.mark.spec("decisions", "6: End of stream")


def said(index: int, text: str, finish: str | None = None) -> bytes:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return event({**HEAD, "choices": [choice]})


def thought(index: int, text: str) -> bytes:
    choice = {"index": index, "delta": {"reasoning_content": text}}
    return event({**HEAD, "choices": [choice]})


def all_text(events: list[Any]) -> str:
    """Return the text and the reasoning of a stream, as they came."""
    return "".join(
        "".join(choice["delta"].values())
        for item in events
        if item != "[DONE]"
        for choice in item.get("choices", ())
    )


def test_a_reset_after_the_finish_reason_harms_nobody(gateway, upstream):
    upstream.script = sends(*STREAM, 0.05, None)
    events = gateway.stream()
    assert text_of(events) == "Hello"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("ends", [(STREAM[2],), (DONE,), (STREAM[2], DONE)])
def test_a_finish_reason_or_done_completes_a_stream(gateway, upstream, ends):
    upstream.script = sends(*STREAM[:2], *ends)
    events = gateway.stream()
    assert all("error" not in item for item in events)
    assert text_of(events) == "Hello"


@END_OF_STREAM
@pytest.mark.parametrize("path", [V1, V2])
@pytest.mark.parametrize(
    ("_case", "ends"),
    [
        ("silence", (NEVER,)),
        ("comments alone", (*[b": still here\n\n", 0.05] * 400,)),
        ("a reset", (0.05, None)),
        ("an event that is too large", (b"data: ", *[b"x" * 2**20] * 20)),
        ("a malformed event", (event(b"{"),)),
        ("an error", (event({"error": {"message": "late", "code": 500}}),)),
        ("a refusal", (event({"error": {"message": "late", "code": 400}}),)),
    ],
)
def test_after_the_finish_reason_a_stream_is_complete(
    gateway, upstream, monkeypatch, path, _case, ends
):
    monkeypatch.setattr(body, "USAGE_WAIT_S", 0.2)
    upstream.script = sends(*STREAM, *ends)

    events = [item for item in gateway.stream(path=path) if item != "[DONE]"]

    assert text_of(events) == "Hello"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert gateway.settled(lambda: gateway.kept.ended)
    (context,) = gateway.kept.ended
    assert (context.status, context.error_status) == (200, 0)


@END_OF_STREAM
def test_all_that_came_in_one_read_completes_a_stream_as_well(gateway, upstream):
    upstream.script = sends(b"".join((*STREAM, event(b"{"))))
    events = gateway.stream()
    assert text_of(events) == "Hello"
    assert all("error" not in item for item in events)


def test_the_total_time_does_not_make_a_finished_stream_a_failure(
    gateway, upstream, monkeypatch
):
    upstream.script = sends(*STREAM, NEVER)
    has_finished = []

    def wait_for_ever(transformer: ChunkTransformer, *_: float) -> float:
        has_finished.append(transformer.has_finished)
        return NEVER

    monkeypatch.setattr(body, "_read_timeout", wait_for_ever)
    with gateway.events() as events:
        begun = [next(events) for _ in range(2)]
        assert gateway.settled(lambda: True in has_finished)
        gateway.pass_time()
        assert all("error" not in item for item in (*begun, *events))


@END_OF_STREAM
def test_usage_that_comes_soon_after_the_finish_reason_is_waited_for(gateway, upstream):
    upstream.script = sends(*STREAM, 0.3, event(USAGE_CHUNK), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE
    assert gateway.kept.ended[0].usage.completion_tokens == 2


def test_a_finish_reason_that_is_empty_is_none(gateway, upstream, monkeypatch):
    monkeypatch.setattr(body, "USAGE_WAIT_S", 0.05)
    upstream.script = sends(
        event(chunk("Hel", "")), 0.2, event(chunk("lo", "")), 0.2, STREAM[2]
    )
    assert text_of(gateway.stream()) == "Hello"


@END_OF_STREAM
@pytest.mark.parametrize("path", [V1, V2])
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
    assert gateway.kept.ended[0].error_status == 500


@END_OF_STREAM
def test_a_choice_that_goes_on_longer_than_another_is_not_cut_off(
    gateway, upstream, monkeypatch
):
    def wait_for_the_usage() -> None:
        monkeypatch.setattr(body, "USAGE_WAIT_S", PATIENCE_S)

    monkeypatch.setattr(body, "USAGE_WAIT_S", 0.0)
    first = said(0, "a"), said(1, "b"), said(0, "c", "stop"), 0.3
    rest = said(1, "d"), 0.3, wait_for_the_usage, said(1, "e", "stop")
    upstream.script = sends(*first, *rest, event(USAGE_CHUNK), DONE)

    events = gateway.stream(n=2)

    assert text_of(events) == "abcde"
    assert events[-1]["usage"] == USAGE
    assert sum("usage" in item for item in events) == 1


def test_a_choice_that_has_finished_is_not_held_back_for_the_others(gateway, upstream):
    upstream.script = sends(said(0, "a"), said(1, "b"), said(0, "c", "stop"), NEVER)
    with gateway.events(n=2) as events:
        third = [next(events) for _ in range(3)][-1]
        assert third["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("index", [None, "0", [1], {"a": 1}, -1, 10**30, 1.5, True])
def test_an_odd_number_of_a_choice_breaks_nothing(gateway, upstream, index):
    odd = {"index": index, "delta": {"content": "x"}, "finish_reason": "stop"}
    upstream.script = sends(event({**HEAD, "choices": [odd, 5, None]}), DONE)
    assert all("error" not in item for item in gateway.stream())


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None, [2]])
def test_an_odd_number_of_choices_is_for_the_upstream_to_judge(gateway, upstream, n):
    upstream.script = sends(*STREAM)
    assert text_of(gateway.stream(n=n)) == "Hello"


@END_OF_STREAM
@pytest.mark.parametrize("path", [V1, V2])
@pytest.mark.parametrize(
    "rest",
    [
        (said(0, "b"), 0.1, said(0, "c"), 0.1, said(0, "d", "stop")),
        (said(0, "b", "stop") + said(0, "c"), 0.1, said(0, "d"), 0.1, DONE),
        (said(0, "b"), 0.1, said(0, "cd"), 0.05, None),
        (thought(0, "b"), 0.1, said(0, "cd", "stop"), DONE),
    ],
)
def test_text_after_an_early_finish_reason_is_passed_on_while_it_comes(
    gateway, upstream, monkeypatch, path, rest
):
    monkeypatch.setattr(body, "USAGE_WAIT_S", 0.01)
    first = said(0, "x") + said(0, "a", "stop") + rest[0]
    upstream.script = sends(first, *rest[1:])

    assert all_text(gateway.stream(path=path)) == "xabcd"
    assert gateway.settled(lambda: gateway.kept.ended)
    (context,) = gateway.kept.ended
    assert (context.status, context.error_status, context.ending) == (200, 0, "")


@END_OF_STREAM
@pytest.mark.parametrize("path", [V1, V2])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("n", "parts"),
    [
        (1, (said(0, "Hello"), DONE)),
        (1, (said(0, "Hello"), event(USAGE_CHUNK), DONE)),
        (1, (said(0, "Hel"), said(0, "lo", ""), DONE)),
        (2, (said(0, "Hello"), said(1, "", "stop"), DONE)),
    ],
)
def test_done_without_a_finish_reason_is_complete_unless_the_entry_is_strict(
    gateway, upstream, path, strict, n, parts
):
    gateway.declare(strict_end=strict)
    upstream.script = sends(*parts)

    events = gateway.stream(path=path, n=n)

    assert all_text(events) == "Hello"
    last = [item for item in events if item != "[DONE]"][-1]
    assert ("error" in last) == strict
    assert gateway.settled(lambda: gateway.kept.ended)
    (context,) = gateway.kept.ended
    assert context.ending == "no finish reason"
    assert (context.status, context.error_status) == (200, 500 * strict)


@pytest.mark.parametrize("strict", [False, True])
def test_a_message_of_anthropic_without_a_stop_reason_has_no_finish_reason(
    gateway, upstream, strict
):
    gateway.declare(upstream="anthropic", strict_end=strict)
    upstream.script = sends_events(*TEXT_STREAM, *stopped("end_turn")[1:])
    assert ("error" in gateway.stream()[-1]) == strict
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].ending == "no finish reason"


def test_a_strict_entry_is_content_with_a_finish_reason(gateway, upstream):
    gateway.declare(strict_end=True)
    upstream.script = sends(*STREAM, DONE)
    assert text_of(gateway.stream()) == "Hello"

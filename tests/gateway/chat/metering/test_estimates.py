"""Streams that a client leaves or that break: their tokens are recorded, estimates are marked."""

import json
from typing import Any

import pytest

from gateway.chat import streams
from gateway.chat.context import ChatContext
from gateway.chat.tokens import Usage
from tests.gateway.chat.harness import MESSAGES, STREAM_OR_NOT, raw_request
from tests.gateway.chat.mock_upstream import (
    DONE,
    HEAD,
    NEVER,
    STREAM,
    TOOL_STREAM,
    USAGE,
    answers,
    chunk,
    event,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    delta,
    sends_events,
    started,
    stopped,
)

PROMPT = 6  # "Say hello to the harbour" has 24 characters
TEXT = "Grüße aus dem Hafen 🌊"  # 21 characters, and more bytes
SAID = event(chunk(TEXT[:10])), event(chunk(TEXT[10:15])), event(chunk(TEXT[15:]))
WHOLE = {"choices": [{"message": {"role": "assistant", "content": TEXT}}]}
REPORTED = event(chunk("Hel", usage=USAGE))


def left(gateway: Any, after: bytes, **fields: Any) -> None:
    """Ask for a stream, and leave when `after` has arrived."""
    with gateway.connected(raw_request(stream=True, **fields)) as client:
        seen = b""
        while after not in seen:
            seen += client.recv(65536)


def counted(gateway: Any, *, status: int = 200) -> tuple[Usage | None, bool]:
    """Return the tokens of the only request, and whether they are estimated."""
    context: ChatContext = gateway.recorded()
    assert context.status == status
    gateway.kept.completed.clear()
    return context.usage, context.is_estimated


# ── Streams that were left or that broke ────────────────────────────────────────────


def test_a_stream_that_the_client_left_is_estimated_from_its_text(gateway, upstream):
    upstream.script = sends(*SAID, NEVER)
    left(gateway, b"afen")  # not in a hexadecimal id
    assert counted(gateway, status=499) == (Usage(PROMPT, 6), True)


def test_what_the_upstream_had_reported_counts(gateway, upstream):
    upstream.script = sends(REPORTED, event(chunk("lo", usage=None)), NEVER)
    left(gateway, b'"lo"')
    assert counted(gateway, status=499) == (Usage(9, 2), False)


@STREAM_OR_NOT
def test_a_request_that_was_left_before_its_answer_took_its_prompt(
    gateway, upstream, stream
):
    upstream.script = sends(NEVER)
    with gateway.connected(raw_request(stream=stream)):
        assert gateway.settled(lambda: upstream.requests)
    assert counted(gateway, status=499) == (Usage(PROMPT, 0), True)


@STREAM_OR_NOT
def test_what_failed_before_its_first_chunk_took_nothing(gateway, upstream, stream):
    upstream.script = answers({}, 500)
    assert gateway.post(stream=stream).status_code == 500
    assert counted(gateway, status=500) == (None, False)


@pytest.mark.parametrize(
    "parts",
    [
        # A stream that broke.
        *((*SAID, 0.05, *ends) for ends in ((None,), (event({"error": "late"}),), ())),
        # A complete one without usage.
        *((*SAID, STREAM[2], *ends) for ends in ((DONE,), (), (NEVER,))),
        # Usage that is none.
        (event(chunk(TEXT, usage={"prompt_tokens": -1})), 0.05, None),
    ],
)
def test_a_stream_without_usage_is_estimated_from_its_text(
    gateway, upstream, monkeypatch, parts
):
    monkeypatch.setattr(streams, "USAGE_WAIT_S", 0.05)
    upstream.script = sends(*parts)
    gateway.stream()
    assert counted(gateway) == (Usage(PROMPT, 6), True)


def test_a_translated_stream_without_usage_tells_the_same_estimate(gateway, upstream):
    word = json.dumps(chunk("harbour "), separators=(",", ":")).encode()
    upstream.script = sends(*[event(word)] * 10, STREAM[2], DONE)
    body = gateway.post(path="/v1/messages", stream=True, max_tokens=64).text
    end = next(part for part in body.split("\n\n") if '"message_delta"' in part)
    assert json.loads(end.partition("data: ")[2])["usage"]["output_tokens"] == 20
    assert counted(gateway) == (Usage(PROMPT, 20), True)


def test_the_arguments_of_tools_and_reasoning_are_text(gateway, upstream):
    thought = {"index": 0, "delta": {"reasoning_content": "x" * 40}}
    thinking = event({**HEAD, "choices": [thought]})
    upstream.script = sends(thinking, *TOOL_STREAM[:2], 0.05, None)
    gateway.stream()
    length = len("x" * 40 + "tide" + '{"at": "Brest"}')
    assert counted(gateway) == (Usage(PROMPT, -(-length // 4)), True)


def test_a_large_prompt_is_forgotten_and_its_length_kept(gateway, upstream):
    upstream.script = sends(event(chunk("")), 0.05, None)
    gateway.stream(messages=[*MESSAGES, {"role": "user", "content": "x" * 4_000_000}])
    assert gateway.recorded().request.body == {}
    assert counted(gateway) == (Usage(PROMPT + 1_000_000, 0), True)


# ── Usage that is incomplete, or in another place ───────────────────────────────────


@pytest.mark.parametrize("usage", [None, [], dict.fromkeys(USAGE, 0)])
def test_what_an_answer_does_not_tell_is_estimated(gateway, upstream, usage):
    upstream.script = answers({**WHOLE, "usage": usage})
    assert gateway.post().json()["usage"] == usage
    assert counted(gateway) == (Usage(PROMPT, 6), True)


def test_a_completion_that_is_not_counted_is_estimated(gateway, upstream):
    usage = {"prompt_tokens": 9}
    upstream.script = answers({**WHOLE, "usage": usage})
    gateway.post()
    assert counted(gateway) == (Usage(9, 6), True)
    upstream.script = sends(*SAID, event(chunk(finish="stop", usage=usage)), DONE)
    gateway.stream()
    assert counted(gateway) == (Usage(9, 6), True)
    details = {"completion_tokens_details": {"reasoning_tokens": 40}}  # at least
    upstream.script = answers({**WHOLE, "usage": usage | details})
    gateway.post()
    assert counted(gateway) == (Usage(9, 40, reasoning_tokens=40), True)


# ── Anthropic ───────────────────────────────────────────────────────────────────────

MESSAGE = {"type": "message", "content": [{"type": "text", "text": TEXT}]}
SPOKEN = delta(0, type="text_delta", text=TEXT)
CACHED = {"input_tokens": 20, "cache_read_input_tokens": 5}
WRITTEN = {"cache_creation_input_tokens": 3}
ZEROS = dict.fromkeys(CACHED, 0) | {"output_tokens": 15}


def stops(**usage: Any) -> list[dict[str, Any]]:
    stop, end = stopped("end_turn")
    return [stop | {"usage": stop["usage"] | usage}, end]


@pytest.mark.parametrize(
    ("_case", "events", "expected"),
    [
        ("the start alone", [started(**CACHED), SPOKEN], (Usage(25, 6, 5), True)),
        ("the stop reason", [started(**CACHED), SPOKEN, *stops()[:1]], (Usage(25, 15, 5), False)),
        ("the whole", [started(**CACHED | WRITTEN), *stops()], (Usage(28, 15, 5, 3), False)),
        ("numbers that fall", [started(**CACHED), *stops(**ZEROS)], (Usage(25, 15, 5), False)),
    ],
)  # fmt: skip
def test_what_anthropic_tells_counts_as_reported(
    claude, upstream, gateway, _case, events, expected
):
    upstream.script = sends_events(*events)
    claude(stream=True)
    assert counted(gateway) == expected


@STREAM_OR_NOT
def test_a_completion_that_anthropic_does_not_count_is_estimated(
    claude, upstream, gateway, stream
):
    usage = {"input_tokens": 20, "output_tokens": None}
    events = [started(**usage), SPOKEN, stops()[0] | {"usage": {}}, stops()[1]]
    whole = answers({**MESSAGE, "usage": usage})
    upstream.script = sends_events(*events) if stream else whole
    claude(stream=stream)
    assert counted(gateway) == (Usage(20, 6), True)

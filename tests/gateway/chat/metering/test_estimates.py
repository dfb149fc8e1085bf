"""Streams that a client leaves or that break: their tokens are recorded, estimates are marked."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gateway.chat.core.context import ChatContext
from gateway.chat.core.usage_tokens import Usage
from gateway.chat.streaming import body
from tests.gateway.chat.harness import MESSAGES
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
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
from tests.gateway.chat.streaming.test_leaving import raw_request
from tests.gateway.chat.test_faults import nothing_is_left
from tests.gateway.chat.upstreams.test_anthropic import delta, started, stopped
from tests.running import PATIENCE_S

pytestmark = pytest.mark.spec("decisions", "6: Usage, estimated where it is not told")

PROMPT = 6  # "Say hello to the harbour" has 24 characters
TEXT = "Grüße aus dem Hafen 🌊"  # 21 characters, and more bytes
SAID = event(chunk(TEXT[:10])), event(chunk(TEXT[10:15])), event(chunk(TEXT[15:]))
EMPTY = event(chunk(""))


def left(gateway: Any, after: bytes, **fields: Any) -> ChatContext:
    """Ask, leave when `after` has arrived, and return what was recorded."""
    with socket.create_connection(
        ("127.0.0.1", gateway.port), timeout=PATIENCE_S
    ) as client:
        client.sendall(raw_request(**fields))
        seen = b""
        while after not in seen:
            seen += client.recv(65536)
    return recorded(gateway, status=499)


def recorded(gateway: Any, *, status: int) -> ChatContext:
    assert gateway.settled(lambda: gateway.kept.ended)
    context: ChatContext = gateway.kept.ended[0]
    assert (len(gateway.kept.ended), context.status) == (1, status)
    assert gateway.settled(lambda: gateway.limits.running == 0)
    return context


def test_a_stream_that_the_client_left_is_estimated_from_its_text(gateway, upstream):
    upstream.script = sends(*SAID, NEVER)
    context = left(gateway, b"afen", stream=True)  # not in a hexadecimal id
    assert context.counted() == (Usage(PROMPT, 6), True)
    assert nothing_is_left(gateway, upstream)


@pytest.mark.parametrize("ends", [(None,), (event({"error": "late"}),), ()])
def test_a_stream_that_broke_is_estimated_from_its_text(gateway, upstream, ends):
    upstream.script = sends(*SAID, 0.05, *ends)
    assert "error" in gateway.stream()[-1]
    context = recorded(gateway, status=200)
    assert context.error_status == 500
    assert context.counted() == (Usage(PROMPT, 6), True)


def test_what_the_upstream_had_reported_counts(gateway, upstream):
    reported = event(chunk("Hel", usage=USAGE)), event(chunk("lo", usage=None))
    upstream.script = sends(*reported, NEVER)
    context = left(gateway, b'"lo"', stream=True)
    assert context.counted() == (Usage(9, 2), False)


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": -1}, {"prompt_tokens": 10**30}, [1], "x", {"a": {}}]
)
def test_nonsense_that_an_upstream_reports_is_estimated_instead(
    gateway, upstream, usage
):
    upstream.script = sends(event(chunk(TEXT, usage=usage)), 0.05, None)
    gateway.stream()
    assert recorded(gateway, status=200).counted() == (Usage(PROMPT, 6), True)


def test_the_arguments_of_tools_and_reasoning_are_text(gateway, upstream):
    thought = {"index": 0, "delta": {"reasoning_content": "x" * 40}}
    thinking = event({**HEAD, "choices": [thought]})
    upstream.script = sends(thinking, *TOOL_STREAM[:2], 0.05, None)
    gateway.stream()
    length = len("x" * 40 + "tide" + '{"at": "Brest"}')
    assert recorded(gateway, status=200).counted() == (
        Usage(PROMPT, -(-length // 4)),
        True,
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_was_left_before_its_answer_took_its_prompt(
    gateway, upstream, stream
):
    upstream.script = sends(NEVER)
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(raw_request(stream=stream))
        assert gateway.settled(lambda: upstream.requests)
    context = recorded(gateway, status=499)
    assert context.counted() == (Usage(PROMPT, 0), True)


@pytest.mark.parametrize("stream", [False, True])
def test_what_failed_before_its_first_chunk_took_nothing(gateway, upstream, stream):
    upstream.script = answers({}, 500)
    assert gateway.post(stream=stream).status_code == 500
    assert recorded(gateway, status=500).counted() == (None, False)


@pytest.mark.parametrize("ends", [(DONE,), (), (NEVER,)])
def test_a_complete_stream_without_usage_is_estimated_as_well(
    gateway, upstream, monkeypatch, ends
):
    monkeypatch.setattr(body, "USAGE_WAIT_S", 0.05)
    upstream.script = sends(*SAID, STREAM[2], *ends)
    gateway.stream()
    assert recorded(gateway, status=200).counted() == (Usage(PROMPT, 6), True)


def test_what_an_answer_does_not_tell_stays_unknown(gateway, upstream):
    upstream.script = answers({"choices": []})
    gateway.post()
    assert recorded(gateway, status=200).counted() == (None, False)


def test_a_large_prompt_is_forgotten_and_its_length_kept(gateway, upstream):
    upstream.script = sends(EMPTY, 0.05, None)
    said = [*MESSAGES, {"role": "user", "content": "x" * 4_000_000}]
    gateway.stream(messages=said)
    context = recorded(gateway, status=200)
    assert context.request.body == {}
    assert context.counted() == (Usage(PROMPT + 1_000_000, 0), True)


WHOLE = {"choices": [{"message": {"role": "assistant", "content": TEXT}}]}


@pytest.mark.parametrize("more", [{}, {"completion_tokens": None}])
def test_a_completion_that_is_not_counted_is_estimated(gateway, upstream, more):
    usage = {"prompt_tokens": 9} | more
    upstream.script = answers({**WHOLE, "usage": usage})
    gateway.post()
    assert recorded(gateway, status=200).counted() == (Usage(9, 6), True)
    gateway.kept.ended.clear()
    upstream.script = sends(*SAID, event(chunk(finish="stop", usage=usage)), DONE)
    gateway.stream()
    assert recorded(gateway, status=200).counted() == (Usage(9, 6), True)


def test_an_estimate_has_at_least_the_reasoning_that_is_counted(gateway, upstream):
    details = {"completion_tokens_details": {"reasoning_tokens": 40}}
    upstream.script = answers({**WHOLE, "usage": {"prompt_tokens": 9} | details})
    gateway.post()
    expected = Usage(9, 40, reasoning_tokens=40)
    assert recorded(gateway, status=200).counted() == (expected, True)


def test_embeddings_have_no_completion(gateway, upstream):
    gateway.declare(inference_type="embedding")
    usage = {"prompt_tokens": 9, "total_tokens": 9}
    upstream.script = answers({"data": [], "usage": usage})
    gateway.post(path="/v1/embeddings", input="x")
    assert recorded(gateway, status=200).counted() == (Usage(9, 0), False)


FINISH = {"index": 0, "delta": {}, "finish_reason": "stop"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v2/chat/completions"])
@pytest.mark.parametrize(
    "last",
    [
        pytest.param({"choices": [FINISH | {"usage": USAGE}]}, id="Kimi"),
        pytest.param({"choices": [FINISH], "x_groq": {"usage": USAGE}}, id="Groq"),
        pytest.param({"choices": [FINISH], "usage": USAGE}, id="in the last chunk"),
    ],
)
def test_usage_is_found_where_servers_put_it(gateway, upstream, path, last):
    upstream.script = sends(*SAID, event({**HEAD, **last}), DONE)
    gateway.stream(path=path)
    assert recorded(gateway, status=200).counted() == (Usage(9, 2), False)


def test_numbers_that_fall_at_the_end_of_a_stream_count_for_nothing(gateway, upstream):
    zero = dict.fromkeys(USAGE, 0)
    upstream.script = sends(
        event(chunk("Hel", usage=USAGE)), event(chunk(finish="stop", usage=zero)), DONE
    )
    gateway.stream()
    assert recorded(gateway, status=200).counted() == (Usage(9, 2), False)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"total_tokens": 11}, Usage(5, 6)),
        ({"total_tokens": 4}, Usage(0, 4)),
        (
            {"total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(8, 3, 8),
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_total_alone_is_divided_as_the_text_is_long(
    gateway, upstream, stream, usage, expected
):
    said = {"role": "assistant", "content": TEXT}
    whole = COMPLETION | {"choices": [{"index": 0, "message": said}], "usage": usage}
    end = event(chunk(finish="stop", usage=usage))
    upstream.script = sends(*SAID, end, DONE) if stream else answers(whole)
    gateway.post(stream=stream)
    assert recorded(gateway, status=200).counted() == (expected, True)


# ── Anthropic ───────────────────────────────────────────────────────────────────────


def named(*events: dict[str, Any]) -> list[bytes]:
    return [f"event: {item['type']}\n".encode() + event(item) for item in events]


BEGUN = (
    started(input_tokens=20, cache_read_input_tokens=5, output_tokens=1),
    delta(0, type="text_delta", text=TEXT),
)


def test_what_anthropic_tells_at_the_start_counts_as_reported(
    claude, upstream, gateway
):
    upstream.script = sends(*named(*BEGUN), 0.05, None)
    claude(stream=True)
    assert recorded(gateway, status=200).counted() == (Usage(25, 6, 5), True)


def test_what_anthropic_tells_with_the_stop_reason_counts_as_reported(
    claude, upstream, gateway
):
    upstream.script = sends(*named(*BEGUN, stopped("end_turn")[0]), 0.05, None)
    claude(stream=True)
    assert recorded(gateway, status=200).counted() == (Usage(25, 15, 5), False)


def test_what_anthropic_tells_at_the_end_has_the_parts_of_the_prompt(
    claude, upstream, gateway
):
    usage = {"cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}
    begun = started(input_tokens=20, output_tokens=1, **usage)
    upstream.script = sends(*named(begun, *stopped("end_turn")))
    claude(stream=True)
    assert recorded(gateway, status=200).counted() == (Usage(28, 15, 5, 3), False)


def test_numbers_of_anthropic_that_fall_count_for_nothing(claude, upstream, gateway):
    begun = started(input_tokens=20, cache_read_input_tokens=5, output_tokens=1)
    stop, end = stopped("end_turn")
    stop = stop | {
        "usage": {
            "input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 15.0,
        }
    }
    upstream.script = sends(*named(begun, BEGUN[1], stop, end))
    events = claude(stream=True)
    assert b'"prompt_tokens":25' in events.content
    assert recorded(gateway, status=200).counted() == (Usage(25, 15, 5), False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "usage", [{"input_tokens": 20}, {"input_tokens": 20, "output_tokens": None}]
)
def test_a_completion_that_anthropic_does_not_count_is_estimated(
    claude, upstream, gateway, stream, usage
):
    message = {"type": "message", "content": [{"type": "text", "text": TEXT}]}
    stop, end = stopped("end_turn")
    whole = sends(*named(started(**usage), BEGUN[1], stop | {"usage": {}}, end))
    upstream.script = whole if stream else answers({**message, "usage": usage})
    claude(stream=stream)
    assert recorded(gateway, status=200).counted() == (Usage(20, 6), True)


WRITES = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}
# What a stream says of them at its end.
LATER: list[Any] = [
    *(None, 5, {}, dict.fromkeys(WRITES, 0), dict.fromkeys(WRITES)),
    WRITES,
    {"ephemeral_5m_input_tokens": 10},
]


@pytest.mark.parametrize(
    ("stream", "later"), [(False, None), *((True, writes) for writes in LATER)]
)
def test_writes_that_anthropics_cache_keeps_for_an_hour_are_known(
    claude, upstream, gateway, stream, later
):
    usage: dict[str, Any] = {
        "input_tokens": 5,
        "output_tokens": 15,
        "cache_creation_input_tokens": 30,
        "cache_creation": WRITES,
    }
    message = {"type": "message", "content": [{"type": "text", "text": "x"}]}
    stop, end = stopped("end_turn")
    stop["usage"] |= {"cache_creation": later}
    whole = sends(*named(started(**usage), BEGUN[1], stop, end))
    upstream.script = whole if stream else answers({**message, "usage": usage})
    claude(stream=stream)
    expected = Usage(35, 15, 0, 30, 0, 20)
    assert recorded(gateway, status=200).counted() == (expected, False)


@pytest.mark.parametrize("value", [-1, 10**30, "9", 1.5, True, [1], {"a": 1}])
@pytest.mark.parametrize("stream", [False, True])
def test_nonsense_of_anthropics_breaks_no_answer(
    claude, upstream, gateway, stream, value
):
    usage = {"input_tokens": value, "output_tokens": value}
    message = {"type": "message", "content": [{"type": "text", "text": "x"}]}
    begun = started(input_tokens=value)
    whole = sends(*named(begun, BEGUN[1], *stopped("end_turn")))
    upstream.script = whole if stream else answers({**message, "usage": usage})
    response = claude(stream=stream)
    assert response.status_code == 200
    assert "error" not in response.text
    recorded(gateway, status=200)

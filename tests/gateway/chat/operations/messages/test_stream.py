"""Chunks of a chat completion as Anthropic's events: order, ends, and what servers do differently."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.chat import sse
from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.messages import blocks
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.operations.messages.stream import MessageStream
from tests.gateway.chat.harness import MESSAGES, named_events_of
from tests.gateway.chat.mock_upstream import (
    DONE,
    STREAM,
    TOOL_STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    calling,
    chunk,
    event,
    sends,
)


def translated(*deltas: dict[str, Any], finish: str | None = "stop") -> list[Any]:
    """Return the events that the deltas of a stream become."""
    stream = MessageStream(model="small", prompt_tokens=7, ids=CallIds())
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk"}
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    if finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    stream.feed([json.dumps({**head, "choices": [each]}).encode() for each in choices])
    return named_events_of(stream.flush_all() + (stream.end() if finish else b""))


def shown(events: list[dict[str, Any]]) -> list[str]:
    """Return blocks as `0:text`, their parts, and `/` where each stops."""
    parts: list[str] = []
    for each in events:
        match each:
            case {
                "type": "content_block_start",
                "index": index,
                "content_block": block,
            }:
                parts.append(f"{index}:{block['type']}")
            case {"type": "content_block_delta", "delta": delta}:
                parts += [v for name, v in delta.items() if name != "type"]
            case {"type": "content_block_stop"}:
                parts.append("/")
    return parts


def call(index: int, arguments: str = "", **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments}
    if name := fields.pop("name", None):
        function["name"] = name
    return {"tool_calls": [{"index": index, **fields, "function": function}]}


def details_of(text: str = "", data: str = "") -> str:
    """Return the signature of thinking that came as details."""
    kind = "reasoning.text" if text else "reasoning.encrypted"
    detail = {"type": kind, **({"text": text} if text else {"data": data})}
    return Carrier("").encrypted_content({"reasoning_details": [detail]}) or ""


def first(index: int, arguments: str = "") -> dict[str, Any]:
    return call(index, arguments, id=f"call_{index}", name="tide")


@pytest.mark.spec(
    "claude-code",
    "message_delta and message_stop end each response",
    "content-type: text/event-stream",
)
def test_a_stream_is_a_message_in_the_apis_order(small, upstream, gateway):
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    upstream.script = sends(*STREAM, event({**USAGE_CHUNK, "usage": usage}), DONE)
    response = small(stream=True, headers={"X-Request-Id": "req-7"})
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["request-id"] == "req-7"
    start, *events, delta, stop = named_events_of(response.content)
    message = start["message"]
    assert {"id", "role", "type", "model", "content", "stop_reason"} <= {*message}
    assert (message["model"], message["content"]) == ("small", [])
    assert (message["stop_reason"], message["usage"]["input_tokens"]) == (None, 6)
    assert shown(events) == ["0:text", "Hel", "lo", "/"]
    assert delta == {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 4,
            "output_tokens": 2,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }
    assert stop == {"type": "message_stop"}
    context = gateway.recorded()
    assert (context.usage.prompt_tokens, context.usage.cached_tokens) == (9, 4)
    assert (context.status, context.error_status) == (200, 0)
    assert upstream.requests[0].json["stream_options"] == {"include_usage": True}


@pytest.mark.spec("claude-code", "the stream is read as it arrives")
def test_each_event_comes_when_its_chunk_arrives(gateway, upstream):
    goes_on = asyncio.Event()
    upstream.script = sends(STREAM[0], goes_on, *WHOLE_STREAM[1:])
    with gateway.opened("/v1/messages", messages=MESSAGES) as response:
        lines = response.iter_lines(1)
        while b'"Hel"' not in next(lines):
            pass
        upstream.loop.set(goes_on)
        assert b"event: message_stop" in list(lines)


# ── Blocks ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec(
    "claude-code",
    "a block starts, goes on and stops before the next one",
)
@pytest.mark.parametrize(
    ("deltas", "parts"),
    [
        ([{"content": ""}], []),
        ([{"content": [{"type": "text", "text": "a"}]}, {"refusal": "b"}], ["0:text", "a", "b", "/"]),
        (
            [{"reasoning": "Hm"}, {"reasoning": "."}, {"content": "a"}, {"reasoning_content": "So"}, {"content": "b"}],
            ["0:thinking", "Hm", ".", "signpost:reasoning", "/", "1:text", "a", "/", "2:thinking", "So", "signpost:reasoning_content", "/", "3:text", "b", "/"],
        ),
        ([{"reasoning": "Hm.", "reasoning_content": "Hm."}], ["0:thinking", "Hm.", "signpost:reasoning_content", "/"]),
        (
            [{"reasoning_content": "Hm."}, {"thinking_blocks": [{"type": "thinking", "signature": "c2ln"}]}, {"thinking_blocks": [{"type": "redacted_thinking", "data": "eA"}]}],
            ["0:thinking", "Hm.", "c2ln", "/", "1:redacted_thinking", "/"],
        ),
        ([{"content": "a"}, first(0), call(0, '{"a":'), call(0, "1}")], ["0:text", "a", "/", "1:tool_use", '{"a":', "1}", "/"]),
        ([first(0), first(1)], ["0:tool_use", "{}", "/", "1:tool_use", "{}", "/"]),
        ([first(0, '{"a":1}'), first(1, "{}")], ["0:tool_use", '{"a":1}', "/", "1:tool_use", "{}", "/"]),
        # Arguments that come in turns.
        (
            [first(0), first(1), call(1, "{"), call(0, "{"), call(1, "}"), call(0, "}"), first(2, "{}")],
            ["0:tool_use", "{", "}", "/", "1:tool_use", "{", "}", "/", "2:tool_use", "{}", "/"],
        ),
        ([first(0, "{"), {"content": "a"}, call(0, "}"), {"content": "b"}], ["0:tool_use", "{", "}", "/", "1:text", "a", "b", "/"]),
        # Calls without an index, or all with the same one, are told apart by their ids.
        ([{"tool_calls": [{"id": key, "function": {"name": "tide", "arguments": "{}"}} for key in "ab"]}], ["0:tool_use", "{}", "/", "1:tool_use", "{}", "/"]),
        ([call(0, id="a"), call(0, name="tide"), call(0, "{}", id="a")], ["0:tool_use", "{}", "/"]),
        ([{"tool_calls": [{"function": {"name": "tide", "arguments": {"at": 1}}}]}], ["0:tool_use", '{"at":1}', "/"]),
        # OpenRouter's details go back as they came, Mistral's thinking does not go back.
        (
            [{"reasoning_details": [{"type": "reasoning.text", "text": "H"}]}, {"reasoning_details": [{"type": "reasoning.text", "text": "m"}]}, {"content": "a"}, {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}], **first(0, "{}")}],
            ["0:thinking", "H", "m", details_of("Hm"), "/", "1:text", "a", "/", "2:thinking", details_of(data="x"), "/", "3:tool_use", "{}", "/"],
        ),
        ([{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}, {"content": [{"type": "text", "text": "a"}]}], ["0:thinking", "Hm", "/", "1:text", "a", "/"]),
        ([first(0, "{}"), first(1, "{}"), call(0, " ")], ["0:tool_use", "{}", "/", "1:tool_use", "{}", "/"]),
    ],
)  # fmt: skip
def test_each_block_starts_goes_on_and_stops_before_the_next(deltas, parts):
    assert shown(translated(*deltas)) == parts


def test_arguments_of_a_call_stream_while_it_is_the_only_one():
    events = translated(first(0), call(0, '{"a":'), finish=None)
    assert shown(events) == ["0:tool_use", '{"a":']


@pytest.mark.parametrize(
    ("deltas", "finish", "reason"),
    [
        ([{"content": "a"}], "stop", "end_turn"),
        ([{"content": "a"}], "length", "max_tokens"),
        ([{"content": "a"}], "content_filter", "refusal"),
        ([first(0)], "tool_calls", "tool_use"),
        ([first(0)], "stop", "tool_use"),
        ([first(0)], "length", "max_tokens"),
        ([{"content": "a"}], "tool_calls", "end_turn"),
        ([{"content": "a"}], "model_length", "max_tokens"),
        ([{"content": "a"}], "new", "end_turn"),
    ],
)
def test_finish_reasons_become_stop_reasons(deltas, finish, reason):
    delta = translated(*deltas, finish=finish)[-2]["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": None}


def test_the_sequence_at_which_vllm_stopped_is_named(small, upstream):
    end = chunk(finish="stop")
    end["choices"][0]["stop_reason"] = "END"
    upstream.script = sends(*STREAM[:2], event(end), DONE)
    delta = named_events_of(small(stream=True).content)[-2]["delta"]
    assert delta == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


# ── Usage ───────────────────────────────────────────────────────────────────────────


def test_usage_that_an_upstream_does_not_report_is_estimated(small, upstream, gateway):
    upstream.script = sends(*STREAM, DONE)
    start, *_, delta, _ = named_events_of(small(stream=True).content)
    assert start["message"]["usage"]["input_tokens"] == 6
    assert (delta["usage"]["input_tokens"], delta["usage"]["output_tokens"]) == (6, 2)
    usage, is_estimated = gateway.recorded().counted()
    assert (usage.prompt_tokens, usage.completion_tokens) == (6, 2)
    assert is_estimated


def test_usage_in_the_first_chunk_begins_the_message(small, upstream):
    early = {**chunk("Hel"), "usage": {"prompt_tokens": 30, "completion_tokens": 1}}
    upstream.script = sends(event(early), *STREAM[1:], event(USAGE_CHUNK), DONE)
    events = named_events_of(small(stream=True).content)
    assert events[0]["message"]["usage"]["input_tokens"] == 30
    assert events[-2]["usage"]["input_tokens"] == 30


def test_the_end_waits_for_the_usage_and_not_for_ever(small, upstream, gateway):
    def no_wait() -> None:
        gateway.pass_time()

    upstream.script = sends(*STREAM, no_wait, asyncio.Event())
    events = named_events_of(small(stream=True).content)
    assert events[-1] == {"type": "message_stop"}


# ── Failures ────────────────────────────────────────────────────────────────────────


@pytest.mark.spec(
    "claude-code",
    "a body that ends earlier is a dropped connection, never a complete one",
)
@pytest.mark.parametrize("end", [(None,), (), (DONE,)])
@pytest.mark.parametrize("parts", [STREAM[:1], STREAM[:2], TOOL_STREAM[:2]])
def test_a_stream_that_is_cut_off_ends_with_an_error(
    small, upstream, gateway, parts, end
):
    upstream.script = sends(*parts, 0.02, *end)
    events = named_events_of(
        small(stream=True, headers={"X-Request-Id": "req-7"}).content
    )
    text = "Upstream service error for request_id req-7"
    assert events[-1] == {
        "type": "error",
        "error": {"type": "api_error", "message": text},
    }
    assert not {"message_delta", "message_stop"} & {each["type"] for each in events}
    assert gateway.recorded().error_status == 500


@pytest.mark.parametrize(
    "more",
    [
        calling({"index": 0, "function": {"arguments": "{} and more"}}),
        event({"error": {"message": "overloaded", "code": 503}}),
        b"data: nonsense\n\n",
        event(chunk(finish="insufficient_system_resource")),
    ],
)
def test_a_fault_of_the_upstream_ends_the_stream(small, upstream, gateway, more):
    second = calling(
        {"index": 1, "id": "b", "function": {"name": "x", "arguments": "{}"}}
    )
    upstream.script = sends(*TOOL_STREAM[:2], second, more, DONE)
    events = named_events_of(small(stream=True).content)
    assert events[-1]["error"]["type"] == "api_error"
    assert gateway.recorded().error_status == 500


def test_a_call_without_a_name_is_a_fault(small, upstream):
    upstream.script = sends(
        calling({"index": 0, "id": "a"}), event(chunk(finish="stop"))
    )
    assert named_events_of(small(stream=True).content)[-1]["type"] == "error"


def test_calls_that_wait_are_bounded(small, upstream, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_EVENT_BYTES", 50)
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10**6)
    more = calling(
        {"index": 1, "id": "b", "function": {"name": "x", "arguments": "1" * 60}}
    )
    upstream.script = sends(TOOL_STREAM[0], more, *TOOL_STREAM[1:])
    assert named_events_of(small(stream=True).content)[-1]["type"] == "error"

"""The events of translated streams: their order, and what Codex' parser expects of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.chat.operations.responses import result
from tests.gateway.chat.harness import REQUEST_ID, UPSTREAM
from tests.gateway.chat.mock_upstream import (
    DONE,
    STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    sends,
)
from tests.gateway.chat.operations.responses.harness import (
    PATCH,
    TIDE,
    answer,
    call,
    create,
    delta,
    events_of,
    kinds,
    stream,
)

STOP, CALLS = event(chunk(finish="stop")), event(chunk(finish="tool_calls"))
USAGE = event(USAGE_CHUNK)


def test_a_text_has_every_event_of_the_published_order(gateway, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    events = stream(gateway)
    assert kinds(events) == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.delta", "output_text.done"),
        *("content_part.done", "output_item.done", "completed"),
    ]
    assert [e["delta"] for e in events if "delta" in e] == ["Hel", "lo"]
    response = events[-1]["response"]
    assert response["model"] == "small"
    assert response["output"][0]["content"][0]["text"] == "Hello"
    assert response["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 11,
    }
    assert events[0]["response"]["id"] == response["id"]
    context = gateway.recorded()
    assert (context.status, context.usage.prompt_tokens) == (200, 9)


def test_reasoning_a_text_and_calls_are_items_in_a_row(gateway, upstream):
    upstream.script = sends(
        *(delta(reasoning_content="Let "), delta(reasoning="me.")),
        delta(content="I look."),
        call(0, id="call_1", type="function", function={"name": "tide"}),
        call(0, function={"arguments": '{"at":'}),
        call(0, function={"arguments": ' "Brest"}'}),
        call(1, id="call_2", function={"name": "tide", "arguments": ""}),
        *(CALLS, USAGE, DONE),
    )
    events = stream(gateway, tools=[TIDE])
    assert kinds(events) == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_summary_part.added"),
        *["reasoning_summary_text.delta"] * 2,
        *("reasoning_summary_text.done", "reasoning_summary_part.done"),
        *("output_item.done", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done", "content_part.done"),
        *("output_item.done", "output_item.added"),
        *["function_call_arguments.delta"] * 2,
        *("function_call_arguments.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done", "completed"),
    ]
    reasoning, message, one, two = events[-1]["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "Let me."}]
    assert "encrypted_content" not in reasoning
    assert message["content"][0]["text"] == "I look."
    assert (one["call_id"], one["name"], one["arguments"]) == (
        *("call_1", "tide"),
        '{"at": "Brest"}',
    )
    assert two["arguments"] == "{}"  # what a client would parse


def test_a_custom_tool_is_called_with_its_text(gateway, upstream):
    text = '*** Begin Patch\n"\\\n*** End Patch'
    arguments = json.dumps({"input": text})
    upstream.script = sends(
        call(0, id="call_1", function={"name": "apply_patch", "arguments": ""}),
        *(call(0, function={"arguments": part}) for part in arguments),
        *(CALLS, DONE),
    )
    events = stream(gateway, tools=[PATCH])
    done = next(e for e in events if e["type"] == "response.output_item.done")
    assert done["item"] == {
        "id": done["item"]["id"],
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "apply_patch",
        "input": text,
    }
    assert kinds(events)[2:6] == [
        *("output_item.added", "custom_tool_call_input.delta"),
        *("custom_tool_call_input.done", "output_item.done"),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        # One index for all calls, none at all, and arguments as an object.
        [call(0, id=key, function={"name": "tide", "arguments": '{"at":1}'}) for key in "ab"],
        [delta(tool_calls=[{"id": key, "function": {"name": "tide", "arguments": '{"at":1}'}} for key in "ab"])],
        [call(n, id="a", function={"name": "tide", "arguments": {"at": 1}}) for n in (0, 1)],
    ],
)  # fmt: skip
def test_calls_are_told_apart_whatever_their_server_sends(gateway, upstream, parts):
    upstream.script = sends(*parts, CALLS, USAGE, DONE)
    one, two = stream(gateway, tools=[TIDE])[-1]["response"]["output"]
    assert one["arguments"] == two["arguments"] == '{"at":1}'
    assert one["call_id"] == "a"
    assert two["call_id"] != "a"


def test_arguments_as_an_object_are_json_at_once_too(gateway, upstream):
    made = {"id": "a", "function": {"name": "tide", "arguments": {"at": 1}}}
    choice = {"message": {"tool_calls": [made, made]}, "finish_reason": "tool_calls"}
    upstream.script = answers({"choices": [choice]})
    one, two = answer(gateway, tools=[TIDE])["output"]
    assert one["arguments"] == two["arguments"] == '{"at":1}'
    assert one["call_id"] != two["call_id"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_mistrals_parts_are_thinking_and_text(gateway, upstream, is_stream):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    content = [thinking, {"type": "text", "text": "a"}]
    if is_stream:
        upstream.script = sends(*(delta(content=[each]) for each in content), STOP)
        output = stream(gateway)[-1]["response"]["output"]
    else:
        choice = {"message": {"content": content}, "finish_reason": "stop"}
        upstream.script = answers({"choices": [choice]})
        output = answer(gateway)["output"]
    reasoning, message = output
    assert reasoning["summary"][0]["text"] == "Hm"
    assert message["content"][0]["text"] == "a"


def test_usage_that_an_upstream_does_not_report_is_estimated(gateway, upstream):
    upstream.script = sends(delta(content="12345678"), STOP, DONE)
    usage = stream(gateway)[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (2, 2)
    _, is_estimated = gateway.recorded().counted()
    assert is_estimated


@pytest.mark.parametrize(
    ("reason", "end"),
    [("model_length", "incomplete"), ("sensitive", "incomplete"), ("network_error", "failed")],
)  # fmt: skip
def test_the_reasons_of_other_servers_are_understood(gateway, upstream, reason, end):
    upstream.script = sends(delta(content="a"), event(chunk(finish=reason)), DONE)
    assert kinds(stream(gateway))[-1] == end


def test_calls_whose_arguments_come_by_turns_are_whole(gateway, upstream):
    upstream.script = sends(
        call(0, id="a", function={"name": "tide", "arguments": '{"at"'}),
        call(1, id="b", function={"name": "tide", "arguments": '{"at"'}),
        call(0, function={"arguments": ': "A"}'}),
        call(1, function={"arguments": ': "B"}'}),
        *(CALLS, DONE),
    )
    output = stream(gateway, tools=[TIDE])[-1]["response"]["output"]
    assert [item["arguments"] for item in output] == ['{"at": "A"}', '{"at": "B"}']


def test_a_call_that_gets_its_name_late_begins_then(gateway, upstream):
    upstream.script = sends(
        call(0, id="a"),
        call(0, function={"arguments": "{"}),
        call(0, function={"name": "tide", "arguments": "}"}),
        *(CALLS, DONE),
    )
    [item] = stream(gateway, tools=[TIDE])[-1]["response"]["output"]
    assert (item["call_id"], item["name"], item["arguments"]) == ("a", "tide", "{}")


def test_a_call_that_goes_on_after_its_end_is_a_failure(gateway, upstream):
    upstream.script = sends(
        call(0, id="a", function={"name": "tide", "arguments": "{}"}),
        call(1, id="b", function={"name": "tide", "arguments": "{}"}),
        call(0, function={"arguments": " "}),
        0.02,
        call(0, function={"arguments": "{}"}),
        *(CALLS, DONE),
    )
    events = stream(gateway, tools=[TIDE])
    assert events[-1]["response"]["error"]["code"] == "server_error"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_an_answer_that_is_cut_is_incomplete(gateway, upstream, finish, reason):
    upstream.script = sends(STREAM[0], event(chunk(finish=finish)), USAGE, DONE)
    last = stream(gateway)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": reason}
    assert last["response"]["output"][0]["status"] == "incomplete"


def test_a_call_that_is_cut_says_so(gateway, upstream):
    upstream.script = sends(
        call(0, id="a", function={"name": "tide", "arguments": '{"at'}),
        event(chunk(finish="length")),
        DONE,
    )
    last = stream(gateway, tools=[TIDE])[-1]
    assert last["response"]["output"][0]["status"] == "incomplete"


def test_a_refusal_is_a_part_of_its_own(gateway, upstream):
    upstream.script = sends(
        *(delta(content="Well."), delta(refusal="I "), delta(refusal="cannot.")),
        *(STOP, DONE),
    )
    events = stream(gateway)
    [message] = events[-1]["response"]["output"]
    assert [part["type"] for part in message["content"]] == ["output_text", "refusal"]
    assert message["content"][1]["refusal"] == "I cannot."
    assert kinds(events).count("refusal.delta") == 2


def test_log_probabilities_and_citations_are_passed_on(gateway, upstream):
    token = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}
    choice = {
        "index": 0,
        "delta": {"content": "Hi"},
        "logprobs": {"content": [token]},
        "finish_reason": None,
    }
    citation = {"url": "http://x", "title": "X", "start_index": 0, "end_index": 2}
    cited = delta(annotations=[{"type": "url_citation", "url_citation": citation}])
    upstream.script = sends(event({**chunk(), "choices": [choice]}), cited, STOP, DONE)
    events = stream(gateway, include=["message.output_text.logprobs"], top_logprobs=2)
    part = events[-1]["response"]["output"][0]["content"][0]
    assert part["logprobs"] == [token]
    assert part["annotations"] == [{"type": "url_citation", **citation}]
    assert upstream.requests[0].json["logprobs"] is True
    assert upstream.requests[0].json["top_logprobs"] == 2


def test_what_is_long_is_not_repeated_in_streams(gateway, upstream):
    tool = {**TIDE, "description": "x" * result.MAX_REPEATED_BYTES}
    upstream.script = sends(*WHOLE_STREAM)
    assert stream(gateway, tools=[tool])[0]["response"]["tools"] == []
    assert stream(gateway, tools=[TIDE])[-1]["response"]["tools"] == [TIDE]
    upstream.script = answers(
        {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    )
    assert answer(gateway, tools=[tool])["tools"] == [tool]


def test_a_stream_without_an_item_is_complete(gateway, upstream):
    upstream.script = sends(STOP, DONE)
    events = stream(gateway)
    assert kinds(events) == ["created", "in_progress", "completed"]
    assert events[-1]["response"]["output"] == []


# ── Failures ────────────────────────────────────────────────────────────────────────


def failure(code: str | None, **fields: Any) -> bytes:
    return event({"error": {"message": "secret", "code": code, **fields}})


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ((STREAM[0], None), "server_error"),
        ((STREAM[0], failure("insufficient_quota")), "insufficient_quota"),
        ((STREAM[0], failure("rate_limit_exceeded")), "rate_limit_exceeded"),
        ((STREAM[0], event({"error": {"code": 429}})), "rate_limit_exceeded"),
        ((STREAM[0], event({"error": {"code": 503}})), "server_is_overloaded"),
    ],
)
def test_a_failure_after_the_first_chunk_ends_the_response(
    gateway, upstream, script, code
):
    upstream.script = sends(script[0], 0.02, *script[1:])
    response = create(gateway, stream=True, headers=REQUEST_ID)
    events = events_of(response.content)
    assert kinds(events)[-1] == "failed"
    failed = events[-1]["response"]
    assert failed["status"] == "failed"
    assert failed["error"] == {"code": code, "message": UPSTREAM}
    assert b"secret" not in response.content
    assert gateway.recorded().error_status == 500


def test_a_request_that_is_too_long_fails_inside_its_stream(gateway, upstream):
    error = {"message": "This model's maximum context length is 8 tokens."}
    for script in (
        answers({"error": error}, 400),
        sends(event({"error": {**error, "code": 400}})),
    ):
        upstream.script = script
        gateway.kept.ended.clear()
        events = stream(gateway)
        assert kinds(events) == ["created", "in_progress", "failed"]
        code = events[-1]["response"]["error"]["code"]
        assert code == "context_length_exceeded"
        context = gateway.recorded()
        assert (context.status, context.error_status) == (200, 400)
    upstream.script = answers({"error": error}, 400)
    response = create(gateway)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


def test_other_failures_before_the_first_chunk_are_ordinary_errors(gateway, upstream):
    upstream.script = answers({"error": {"message": "no", "code": "x"}}, 400)
    for is_stream in (False, True):
        response = create(gateway, stream=is_stream)
        assert response.status_code == 400
        error = response.json()["error"]
        assert (error["message"], error["code"]) == ("no", "x")
    upstream.script = answers({}, 429, Retry_After="7")
    response = create(gateway, stream=True)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "7")


def test_an_answer_that_grows_without_end_is_ended(gateway, upstream, monkeypatch):
    monkeypatch.setattr("gateway.chat.operations.responses.events.MAX_EVENT_BYTES", 4)
    upstream.script = sends(STREAM[0], 0.02, *STREAM[1:], DONE)
    assert kinds(stream(gateway))[-1] == "failed"

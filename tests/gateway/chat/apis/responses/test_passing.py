"""Responses of an upstream that has the API itself: as they came, but for the model's name."""

import json
from typing import Any

import pytest

from gateway.chat.apis import carried
from gateway.configuration.shapes import Target
from tests.gateway.chat.apis.responses.harness import (
    COMPLETED,
    CREATED,
    DELTA,
    RESPONSE,
    create,
    in_progress,
    kinds,
    part,
)
from tests.gateway.chat.harness import (
    INTERNAL,
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
    named_events_of,
)
from tests.gateway.chat.mock_upstream import DONE, answers, event, sends


@pytest.fixture
def passing(gateway) -> Any:
    gateway.declare(speaks=frozenset({"chat", "responses"}))
    return gateway


def events_in(response: Any) -> list[Any]:
    assert response.status_code == 200, response.text
    return named_events_of(response.content)


def test_a_response_passes_with_the_requested_name(passing, upstream):
    upstream.script = answers(RESPONSE)
    fields: dict[str, Any] = {
        "previous_response_id": "resp_0",
        "store": True,
        "tools": [{"type": "web_search"}],
        "unknown": 1.0,
    }
    assert create(passing, **fields).json() == {**RESPONSE, "model": "small"}
    request = upstream.requests[0]
    assert request.path == "/v1/responses"
    assert request.json == {"model": "upstream-model", "input": "Hello", **fields}
    assert b'"unknown": 1.0' in request.body
    usage = passing.recorded().usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (9, 2)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (4, 1)


def test_a_stream_passes_with_the_requested_name(passing, upstream):
    upstream.script = sends(CREATED, DELTA, COMPLETED)
    response = create(passing, stream=True)
    events = events_in(response)
    assert events[0]["response"] == in_progress(model="small")
    assert events[1] == json.loads(DELTA[6:])
    assert events[2]["response"] == {**RESPONSE, "model": "small"}
    assert '"n":1.0' in response.text  # numbers keep their text
    assert "[DONE]" not in response.text
    sent = upstream.requests[0].json
    assert sent == {"model": "upstream-model", "input": "Hello", "stream": True}
    context = passing.recorded()
    assert (context.status, context.usage.prompt_tokens) == (200, 9)


def test_a_stream_can_end_incomplete_or_with_done(passing, upstream):
    response = {**RESPONSE, "status": "incomplete"}
    upstream.script = sends(
        CREATED, DELTA, part("incomplete", 2, response=response), DONE
    )
    assert kinds(events_in(create(passing, stream=True)))[-1] == "incomplete"


@STREAM_OR_NOT
def test_what_other_upstreams_want_back_does_not_pass(passing, upstream, stream):
    key = carried.call_id("call_1", {"google": {"thought_signature": "s" * 100}})
    call = {"type": "function_call", "name": "tide", "arguments": "{}"}
    result = {"type": "function_call_output", "output": "high"}
    reasoning = {"type": "reasoning", "summary": []}
    packed = carried.pack({"reasoning": "Hm"})
    upstream.script = sends(CREATED, DELTA, COMPLETED) if stream else answers(RESPONSE)
    kept = {**reasoning, "encrypted_content": "gAAAA"}
    given = [
        {**reasoning, "encrypted_content": packed},
        kept,
        {**call, "call_id": key},
        {**result, "call_id": key},
        {**result, "call_id": "call_2"},
    ]
    assert create(passing, input=given, stream=stream).status_code == 200
    assert upstream.requests[0].json["input"] == [
        kept,
        {**call, "call_id": "call_1"},
        {**result, "call_id": "call_1"},
        {**result, "call_id": "call_2"},
    ]


@STREAM_OR_NOT
def test_a_response_in_the_background_is_refused(passing, upstream, stream):
    response = create(passing, background=True, stream=stream)
    assert response.status_code == 400
    text = "Endpoint does not support request: background: true"
    assert response.json()["error"]["message"] == text
    assert not upstream.requests


def failed(code: str, message: str = "secret") -> bytes:
    error = {"code": code, "message": message}
    return part("failed", 2, response=in_progress(status="failed", error=error))


@pytest.mark.parametrize("code", ["server_error", "insufficient_quota"])
def test_a_failure_before_any_part_lets_another_target_answer(passing, upstream, code):
    bad, good = sends(CREATED, failed(code)), sends(CREATED, DELTA, COMPLETED)
    targets = Target(upstream.url, "a", weight=1000), Target(upstream.url, "b")
    passing.declare(speaks=frozenset({"chat", "responses"}), targets=targets)

    async def script(request: Any) -> None:
        is_first = len(upstream.requests) == 1
        await (bad if is_first else good)(request)

    upstream.script = script
    assert kinds(events_in(create(passing, stream=True)))[-1] == "completed"
    assert len(upstream.requests) == 2


def test_a_failure_that_is_alone_is_an_ordinary_error(passing, upstream):
    upstream.script = sends(CREATED, failed("rate_limit_exceeded"))
    response = create(passing, stream=True)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert "secret" not in response.text
    upstream.script = sends(
        event({"type": "error", "code": "server_error", "message": "s"})
    )
    response = create(passing, stream=True)
    assert (response.status_code, response.json()["error"]["message"]) == (
        500,
        INTERNAL,
    )


@pytest.mark.parametrize("end", [failed("server_error"), None, b""])
def test_a_failure_after_it_keeps_the_response(passing, upstream, end):
    upstream.script = sends(CREATED, DELTA, 0.02, end)
    response = create(passing, stream=True, headers=REQUEST_ID)
    last = events_in(response)[-1]
    assert (last["type"], last["sequence_number"]) == ("response.failed", 2)
    assert last["response"]["id"] == "resp_1"
    assert last["response"]["model"] == "small"
    assert last["response"]["error"] == {"code": "server_error", "message": UPSTREAM}
    assert passing.recorded().error_status == 500


def test_a_request_that_is_too_long_keeps_its_code(passing, upstream):
    upstream.script = sends(CREATED, failed("context_length_exceeded", "too long"))
    last = events_in(create(passing, stream=True))[-1]
    error = {"code": "context_length_exceeded", "message": "too long"}
    assert last["response"]["error"] == error


@STREAM_OR_NOT
def test_a_stream_or_response_without_an_answer_is_a_failure(passing, upstream, stream):
    values: list[Any] = [{}, {"output": None}, {"error": {"code": "server_error"}}, []]
    for value in values:
        upstream.script = sends(event(value)) if stream else answers(value)
        assert create(passing, stream=stream).status_code == 500
    if stream:
        upstream.script = sends(CREATED)
        assert create(passing, stream=True).status_code == 500


def test_events_of_no_kind_are_left_out(passing, upstream):
    upstream.script = sends(
        event({"x": 1}), event({"type": 5}), event({"type": "a\nb"}), CREATED, DELTA, COMPLETED
    )  # fmt: skip
    assert len(events_in(create(passing, stream=True))) == 3

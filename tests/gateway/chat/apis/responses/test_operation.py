"""/v1/responses by the clients of OpenAI, and at upstreams of every kind."""

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from gateway.configuration.shapes import Allow
from tests.gateway.chat.apis.responses.harness import (
    PATCH,
    PATH,
    TIDE,
    answer,
    call,
    create,
    delta,
)
from tests.gateway.chat.harness import IDENTITY, NOT_FOUND, STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    USAGE,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    greeting,
    says,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE

CALLS = event(chunk(finish="tool_calls"))


@pytest.fixture
def client(gateway, key):
    with openai.OpenAI(
        base_url=gateway.url + "/v1", api_key=key, max_retries=0
    ) as openai_client:
        yield openai_client


def test_the_client_reads_a_response(client, upstream, gateway):
    upstream.script = answers(COMPLETION)
    response = client.responses.create(model="small", input="Hello")
    assert (response.output_text, response.model) == ("Hello", "small")
    assert response.usage.input_tokens == USAGE["prompt_tokens"]
    context = gateway.recorded()
    assert (context.usage.prompt_tokens, context.target.model) == (9, "upstream-model")


def test_the_clients_helper_reads_a_stream(client, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    with client.responses.stream(model="small", input="Hello") as opened:
        seen = [item.type for item in opened]
        final = opened.get_final_response()
    assert final.output_text == "Hello"
    assert seen[0] == "response.created"
    assert seen[-1] == "response.completed"


def test_the_client_parses_a_text_by_its_schema(client, upstream):
    class Tide(BaseModel):
        at: str

    upstream.script = says('{"at": "06:12"}', stream=False)
    response = client.responses.parse(model="small", input="x", text_format=Tide)
    assert response.output_parsed == Tide(at="06:12")
    schema = upstream.requests[0].json["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("Tide", True)


def test_a_conversation_goes_on_with_what_the_client_got(client, upstream):
    upstream.script = sends(
        delta(reasoning_content="Hm"),
        call(0, id="call_1", function={"name": "tide", "arguments": '{"at": "Brest"}'}),
        *(CALLS, DONE),
    )
    tools: Any = [TIDE]
    include: Any = ["reasoning.encrypted_content"]
    with client.responses.stream(
        model="small", input="When?", tools=tools, include=include
    ) as opened:
        opened.until_done()
        first = opened.get_final_response()
    reasoning, made = first.output
    assert reasoning.encrypted_content.startswith("sp1.")
    history: Any = [
        {"role": "user", "content": "When?"},
        *(item.model_dump(exclude_none=True) for item in first.output),
        {"type": "function_call_output", "call_id": made.call_id, "output": ""},
    ]
    upstream.script = answers(COMPLETION)
    client.responses.create(model="small", input=history, tools=tools)
    _, assistant, tool = upstream.requests[1].json["messages"]
    assert assistant["reasoning_content"] == "Hm"
    [again] = assistant["tool_calls"]
    assert (again["id"], again["function"]["name"]) == ("call_1", "tide")
    assert tool == {"role": "tool", "tool_call_id": "call_1", "content": ""}


def test_the_client_raises_its_own_errors(client, upstream):
    upstream.script = answers({"error": {"message": "no input"}}, 400)
    with pytest.raises(openai.BadRequestError, match="no input"):
        client.responses.create(model="small", input="x")
    with pytest.raises(openai.NotFoundError, match=NOT_FOUND):
        client.responses.create(model="absent", input="x")
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(model="small", input="x", previous_response_id="r")
    upstream.script = answers({}, 429)
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="small", input="x", stream=True)


# ── Upstreams ───────────────────────────────────────────────────────────────────────


def test_anthropics_thinking_goes_there_and_back(claude, gateway, upstream):
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "tide", "input": {"at": "Brest"}},
    ]
    upstream.script = answers({**MESSAGE, "content": blocks, "stop_reason": "tool_use"})
    response = answer(gateway, model="claude", tools=[TIDE])
    reasoning, text, made = response["output"]
    assert reasoning["summary"][0]["text"] == "Hm"
    assert text["content"][0]["text"] == "I look."
    assert (made["name"], json.loads(made["arguments"])) == ("tide", {"at": "Brest"})
    result = {
        "type": "function_call_output",
        "call_id": made["call_id"],
        "output": "",
    }
    answer(gateway, model="claude", tools=[TIDE], input=[*response["output"], result])
    assistant, user = upstream.requests[1].json["messages"]
    assert assistant == {"role": "assistant", "content": blocks}
    assert user["content"][0]["tool_use_id"] == "toolu_1"


@STREAM_OR_NOT
def test_an_upstream_without_the_api_answers_for_one_with_it(gateway, upstream, stream):
    gateway.declare(speaks=frozenset({"responses"}), fallbacks=("plain",))
    gateway.declare("plain")

    async def script(request: Any) -> None:
        is_first = request.path == "/v1/responses"
        await (answers({}, 503) if is_first else greeting(stream=stream))(request)

    upstream.script = script
    response = create(gateway, stream=stream)
    assert (response.status_code, response.headers["X-Signpost-Model"]) == (
        200,
        "plain",
    )
    paths = [request.path for request in upstream.requests]
    assert paths == ["/v1/responses", "/v1/chat/completions"]


def test_a_completion_without_usage_or_with_parts_is_answered(gateway, upstream):
    text = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    call_ = {"id": "1", "function": {"name": "apply_patch", "arguments": "raw text"}}
    message = {"content": text, "refusal": "no", "tool_calls": [call_]}
    upstream.script = answers({"choices": [{"message": message}]})
    response = answer(gateway, tools=[PATCH])
    said, made = response["output"]
    assert [part["type"] for part in said["content"]] == ["output_text", "refusal"]
    assert said["content"][0]["text"] == "Hello"
    assert made["input"] == "raw text"
    # Clients need numbers: they are estimates, as in the record.
    assert response["usage"]["input_tokens"] > 0
    assert response["usage"]["output_tokens"] > 0
    broken: list[list[Any]] = [[], [5], [{}], [{"message": 5}]]
    for choices in broken:
        upstream.script = answers({"choices": choices, "usage": USAGE})
        assert answer(gateway)["output"] == []


def test_a_denied_model_is_recorded_with_the_name_of_the_operation(gateway):
    gateway.declare("hidden", allow=Allow(everyone=False))
    for name in ("hidden", "absent"):
        assert create(gateway, model=name).status_code == 404
    assert gateway.kept.denied == [("responses", "hidden"), ("responses", "absent")]


def test_a_client_that_leaves_ends_the_call(gateway, upstream):
    upstream.script = sends(STREAM[0], 3600.0)
    with gateway.opened(PATH, input="Hello", messages=None) as response:
        assert next(response.iter_lines(1)) == b"event: response.created"
    context = gateway.recorded()
    assert (context.status, context.completion_characters) == (499, 3)
    assert context.prompt_characters >= len("Hello")


def test_a_client_that_leaves_after_the_last_event_got_everything(gateway, upstream):
    """Codex does so: it does not wait for the end of the body."""
    upstream.script = sends(*WHOLE_STREAM, 3600.0)
    with gateway.opened(PATH, input="Hello", messages=None) as response:
        lines = response.iter_lines(1)
        assert any(line == b"event: response.completed" for line in lines)
    assert gateway.recorded().status == 200


def test_a_request_for_a_websocket_is_answered_at_once(gateway):
    lines = [
        *(f"GET {PATH} HTTP/1.1", "Host: localhost", "Connection: Upgrade"),
        *("Upgrade: websocket", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *(f"{name}: {value}" for name, value in IDENTITY.items()),
    ]
    with gateway.connected("\r\n".join([*lines, "", ""]).encode()) as connection:
        head = connection.recv(65_536)
    assert head.startswith(b"HTTP/1.1 405 ")
    assert b"allow: post" in head.lower()

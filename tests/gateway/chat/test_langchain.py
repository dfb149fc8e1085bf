"""LangChain's ChatOpenAI, as an application uses it, against both families of addresses."""

from __future__ import annotations

import json

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    STREAM,
    TOOL_STREAM,
    WHOLE_STREAM,
    answers,
    sends,
)

TIDE = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "When the tide is high.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "tide", "arguments": '{"at": "Brest"}'},
}


@pytest.fixture(params=["/v1", "/v2"])
def model(request, gateway, key) -> ChatOpenAI:
    return ChatOpenAI(
        base_url=gateway.url + request.param, api_key=key, model="small", max_retries=0
    )


def test_a_question_is_answered_and_its_tokens_are_told(model, upstream):
    upstream.script = answers(COMPLETION)

    response = model.invoke([HumanMessage("Say hello")])

    assert response.content == "Hello"
    assert response.usage_metadata["input_tokens"] == 9
    assert response.response_metadata["model_name"] == "small"
    body = upstream.requests[0].json
    assert body["messages"] == [{"role": "user", "content": "Say hello"}]


def test_a_stream_is_read_to_its_usage(model, upstream):
    upstream.script = sends(*WHOLE_STREAM)

    parts = list(model.stream("Say hello", stream_usage=True))

    assert "".join(part.text for part in parts) == "Hello"
    usages = [part.usage_metadata for part in parts if part.usage_metadata]
    assert [item["output_tokens"] for item in usages] == [2]


def test_a_tool_is_called_and_its_result_sent_back(model, upstream):
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    upstream.script = answers({**COMPLETION, "choices": [choice]})
    question = HumanMessage("When is high water in Brest?")

    called = model.bind_tools([TIDE]).invoke([question])

    assert isinstance(called, AIMessage)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("tide", {"at": "Brest"})
    assert upstream.requests[0].json["tools"][0]["function"]["name"] == "tide"

    upstream.script = answers(COMPLETION)
    model.invoke([question, called, ToolMessage("04:12", tool_call_id="call_1")])
    *_, assistant, result = upstream.requests[1].json["messages"]
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {
        "at": "Brest"
    }
    assert (result["role"], result["content"]) == ("tool", "04:12")


def test_a_streamed_tool_call_is_put_together(model, upstream):
    upstream.script = sends(*TOOL_STREAM)
    first, *rest = model.bind_tools([TIDE]).stream("When?")
    for part in rest:
        first += part
    assert [(item["name"], item["args"]) for item in first.tool_calls] == [
        ("tide", {"at": "Brest"})
    ]


@pytest.mark.parametrize("streams", [False, True])
def test_errors_are_the_exceptions_that_applications_catch(model, upstream, streams):
    upstream.script = answers({"error": {"message": "no messages"}}, 400)
    with pytest.raises(openai.BadRequestError) as refused:
        list(model.stream("x")) if streams else model.invoke("x")
    assert "no messages" in refused.value.response.text
    upstream.script = answers({}, 503)
    with pytest.raises(openai.InternalServerError):
        list(model.stream("x")) if streams else model.invoke("x")


def test_a_stream_that_breaks_raises(model, upstream):
    upstream.script = sends(STREAM[0], 0.02, None)
    with pytest.raises(openai.APIError):
        list(model.stream("x"))

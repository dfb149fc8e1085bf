"""The request log: what is kept of requests of every shape, whole, streamed, left and failed."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.chat.context import ABSENT, ChatContext
from gateway.chat.request_log.cut import Room
from gateway.chat.request_log.entry import LogEntry, last_text, tool_names
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import RequestLogSettings
from tests.gateway.chat.harness import (
    MESSAGES,
    STREAM_OR_NOT,
    V1,
    V2,
    Gateway,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    answers,
    chunk,
    event,
    greeting,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
    sends_events,
)

SMALL = RequestLogSettings(models=frozenset({"small", "claude", "vectors"}))
PROMPTS: dict[str, Any] = {
    V1: {"messages": MESSAGES},
    V2: {"messages": MESSAGES},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 5},
    "/v1/responses": {"input": "Say hello to the harbour"},
}
TOOL = {"type": "function", "function": {"name": "tide", "parameters": {}}}


@pytest.fixture
def gateway(gateway: Gateway) -> Gateway:
    gateway.change(request_log=SMALL)
    return gateway


def logged(gateway: Gateway) -> tuple[ChatContext, LogEntry]:
    assert gateway.settled(lambda: gateway.kept.completed)
    context = gateway.kept.completed[-1]
    assert isinstance(context.log, LogEntry)
    return context, context.log


def text(texts: LogEntry) -> str:
    return "".join(choice["text"] for choice in texts.answer.value())


@pytest.mark.spec("gateway", "usage is recorded in the background after the response")
@STREAM_OR_NOT
@pytest.mark.parametrize("path", PROMPTS)
def test_the_prompt_and_the_answer_of_every_shape_are_kept(
    gateway, upstream, path, stream
):
    upstream.script = greeting(stream=stream)
    body = {"model": "small", "stream": stream, **PROMPTS[path]}
    response = gateway.post(json.dumps(body), path=path)
    assert response.status_code == 200
    context, texts = logged(gateway)
    assert (context.failure, texts.is_cut) == ("", False)
    assert texts.prompt == body
    assert last_text(texts.prompt) == "Say hello to the harbour"
    assert text(texts) == "Hello"
    assert texts.answer.value()[0]["finish_reason"]
    who = context.caller.tenant, context.caller.principal
    assert (context.status, *who) == (200, "acme", "ada")
    assert context.target.model == "upstream-model"
    assert (context.first_chunk_s is not None) == stream
    assert context.usage == Usage(9, 2)


@STREAM_OR_NOT
def test_messages_that_pass_as_they_are_are_kept_too(gateway, claude, upstream, stream):
    upstream.script = sends_events(*TEXT_STREAM) if stream else answers(MESSAGE)
    claude(path="/v1/messages", max_tokens=5, stream=stream)
    context, texts = logged(gateway)
    assert context.operation.action == "messages"
    assert text(texts)


def test_every_text_of_a_stream_is_kept_where_it_belongs(gateway, upstream):
    def said(index: int, **delta: str) -> bytes:
        choice = {"index": index, "delta": delta, "finish_reason": None}
        return event({"id": "c", "model": "there", "choices": [choice]})

    parts = [said(0, content=each) for each in ("Sh", "ip", 's "A"', "s", "!")]
    parts[2:2] = [said(1, content="Tide"), said(1, content="s"), said(0, content="")]
    # An event with more than a text, again and again.
    parts += [said(0, content=" a", reasoning_content="hm ")] * 3
    finishes = [event({**chunk(finish="stop"), "choices": [
        {"index": index, "delta": {}, "finish_reason": "stop"} for index in (0, 1)
    ]})]  # fmt: skip
    upstream.script = sends(*parts, *finishes, DONE)
    gateway.stream(n=2)
    first, second = logged(gateway)[1].answer.value()
    assert first["text"] == 'Ships "A"s! a a a'
    assert (first["reasoning"], second["text"]) == ("hm hm hm ", "Tides")
    assert logged(gateway)[0].completion_characters == 17 + 9 + 5


def test_a_stream_that_its_client_leaves_is_kept_up_to_there(gateway, upstream):
    upstream.script = sends(*STREAM[:2], asyncio.Event())
    with gateway.events() as events:
        assert next(events)["choices"]
        assert next(events)["choices"]
    context, texts = logged(gateway)
    assert (text(texts), context.status) == ("Hello", 499)


@pytest.mark.parametrize(
    ("script", "stream", "said"),
    [
        (answers({"error": {"message": "secret detail"}}, 500), False, ""),
        (answers({"error": {"message": "secret detail"}}, 500), True, ""),
        (sends(*STREAM[:2], None), True, "Hello"),
    ],
)
def test_a_failed_request_is_kept_with_what_its_client_got(
    gateway, upstream, script, stream, said
):
    upstream.script = script
    body = gateway.post(stream=stream).text
    context, texts = logged(gateway)
    assert text(texts) == said
    assert context.failure
    assert context.failure in body
    assert context.error_status or context.status == 500


def test_nothing_is_kept_of_other_models_and_of_what_has_no_text(gateway, upstream):
    gateway.declare(name="other")
    gateway.declare(name="vectors", inference_type="embedding")
    upstream.script = answers(COMPLETION)
    gateway.post(model="other")
    gateway.post(path="/v1/embeddings", model="vectors", input="x")
    gateway.post(path="/v1/messages/count_tokens", max_tokens=5)
    assert gateway.settled(lambda: len(gateway.kept.ended) == 3)
    assert all(each.log is None for each in gateway.kept.completed)


def test_a_tenant_is_logged_for_every_model(gateway, upstream):
    settings = RequestLogSettings(tenants=frozenset({"acme"}), max_characters=1000)
    gateway.change(request_log=settings)
    gateway.declare(name="other")
    upstream.script = answers(COMPLETION)
    content = [
        {"role": "user", "content": "old " * 300},
        {"role": "user", "content": "new"},
    ]
    gateway.post(model="other", messages=content)
    _, texts = logged(gateway)
    assert texts.is_cut
    assert texts.prompt["messages"][1] == content[1]
    assert texts.prompt["messages"][0]["content"].endswith("…")


def test_a_request_that_is_refused_before_a_call_is_recorded_too(gateway, upstream):
    gateway.limits.at_once = 1
    gateway.limits._running["acme/ada"] = 1
    assert gateway.post(stream=True).status_code == 429
    gateway.limits._running.clear()
    assert gateway.post(model="absent").status_code == 404
    many, absent = gateway.kept.completed
    assert many.endpoint is absent.endpoint is ABSENT
    assert (many.request.model, many.status) == ("small", 429)
    assert (many.request.stream, many.failure) == (True, "At most 1 requests at once.")
    assert (absent.request.model, absent.status) == ("absent", 404)


def test_instructions_are_kept_with_the_last_messages(gateway, upstream):
    gateway.change(request_log=replace(SMALL, max_characters=1000))
    upstream.script = answers(COMPLETION)
    system = {"role": "system", "content": "Be kind."}
    messages = [{"role": "user", "content": f"{n} " + "x" * 90} for n in range(50)]
    gateway.post(messages=[system, *messages])
    _, texts = logged(gateway)
    assert texts.prompt["messages"][0] == system
    assert texts.prompt["messages"][-1] == messages[-1]
    assert len(texts.prompt["messages"]) < 12


def test_a_row_holds_what_no_database_stores_as_it_is():
    prompt = {"messages": [{"role": "user", "content": 'NUL \0, half \ud83d, "quote"'}]}
    texts = LogEntry(prompt, ["tide"], Room(0), 0)
    excerpt, truncated, tools, stored, _ = texts.columns()
    assert (excerpt, truncated) == ('NUL \ufffd, half ?, "quote"', False)
    assert (json.loads(stored), json.loads(tools)) == (prompt, ["tide"])


def test_tools_are_kept_by_their_names_alone(gateway, upstream):
    upstream.script = answers(COMPLETION)
    gateway.post(tools=[TOOL], headers={"Authorization": "Bearer "})
    gateway.post(tools=[TOOL])
    _, texts = logged(gateway)
    assert texts.tools == ["tide"]
    assert "tools" not in texts.prompt


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (
            {"tools": [TOOL, {"name": "Bash"}, {"type": "web_search"}]},
            ["tide", "Bash", "web_search"],
        ),
        ({"functions": [{"name": "old"}], "tools": None}, ["old"]),
        ({"tools": [1, {}, {"function": 5}, {"name": 5}]}, []),
        ({"tools": {"name": "x"}}, []),
    ],
)
def test_the_tools_of_every_shape_have_names(body: dict[str, Any], names: list[str]):
    assert list(tool_names(body)) == names


@pytest.mark.parametrize(
    ("prompt", "excerpt"),
    [
        (
            {"messages": [{"content": [{"text": "a"}, {"type": "text", "text": "b"}]}]},
            "b",
        ),
        ({"input": [{"type": "function_call_output", "output": "5"}]}, "5"),
        ({"prompt": ["a", "b"]}, "b"),
        ({"messages": 5}, ""),
        ({}, ""),
    ],
)
def test_the_last_text_of_a_prompt(prompt: dict[str, Any], excerpt: str):
    assert last_text(prompt) == excerpt

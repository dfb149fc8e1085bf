"""Policies at work: requests and answers of every shape, denied or masked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.chat.policies.checks import Checks
from gateway.chat.policies.rules import Policies, Rule
from gateway.configuration.content import PolicyEntry, RequestLogSettings
from tests.gateway.chat.harness import INTERNAL, STREAM_OR_NOT, V1, V2, Gateway
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    answers,
    chunk,
    completion,
    event,
    greeting,
    says,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
    sends_events,
    stopped,
)

CARD = "4111 1111 1111 1111"
PROMPT = [{"role": "user", "content": f"My card is {CARD}."}]
BODIES: dict[str, dict[str, Any]] = {
    V1: {"messages": PROMPT},
    V2: {"messages": PROMPT},
    "/v1/messages": {"messages": PROMPT, "max_tokens": 5},
    "/v1/responses": {"input": f"My card is {CARD}."},
}
LOG = RequestLogSettings(models=frozenset({"small"}))
EVERY_PATH = pytest.mark.parametrize("path", BODIES)


def spans(text: str) -> list[tuple[int, int]]:
    """Own code of an operator: objects to `ferry`, in no order and twice."""
    start = text.find("ferry")
    return [] if start < 0 else [(start, start + 500), (start, start + 5)]


def policies(gateway: Gateway, *entries: PolicyEntry) -> None:
    gateway.change(policies=Policies.of(entries))


def post(gateway: Gateway, path: str, **fields: Any) -> Any:
    body = {"model": "small", **BODIES[path], **fields}
    return gateway.post(json.dumps(body), path=path)


def message_of(response: Any, path: str) -> str:
    body = response.json()
    return str(body["detail"] if path == V2 else body["error"]["message"])


@STREAM_OR_NOT
@EVERY_PATH
def test_a_denied_request_is_400_in_the_shape_of_its_caller_and_goes_nowhere(
    gateway, upstream, path, stream
):
    policies(gateway, PolicyEntry("no cards", "deny", pattern="card"))
    response = post(gateway, path, stream=stream)
    assert response.status_code == 400
    assert message_of(response, path) == "The request is denied by the policy no cards."
    assert upstream.requests == []
    ((_, model, reason),) = gateway.kept.refused
    assert (model, reason) == ("small", "no cards")
    assert gateway.recorded().status == 400


@STREAM_OR_NOT
@EVERY_PATH
def test_a_masked_request_reaches_the_upstream_without_what_was_masked(
    gateway, upstream, path, stream
):
    gateway.change(request_log=LOG)
    policies(gateway, PolicyEntry("card", "mask", pattern="card"))
    upstream.script = greeting(stream=stream)
    assert post(gateway, path, stream=stream).status_code == 200
    sent = upstream.requests[0].json["messages"]
    assert "My card is [card]." in json.dumps(sent)
    assert gateway.settled(lambda: gateway.kept.logged)
    (entry,) = gateway.kept.logged
    assert CARD not in json.dumps(entry.prompt)
    assert entry.rules == ["card"]
    assert gateway.kept.refused == []


@STREAM_OR_NOT
@EVERY_PATH
def test_answers_are_masked_and_denied(gateway, upstream, path, stream):
    text = f"Take {CARD}, ada@example.com"
    upstream.script = says(text[:9], text[9:20], text[20:], stream=stream)
    mask = PolicyEntry("card", "mask", "answer", pattern="card")
    policies(gateway, mask)
    content = post(gateway, path, stream=stream).text
    assert ("[card], ada@example.com" in content, CARD in content) == (True, False)

    policies(gateway, mask, PolicyEntry("mail", "deny", "answer", pattern="email"))
    denied = post(gateway, path, stream=stream)
    assert "denied by the policy mail" in denied.text
    assert "ada@" not in denied.text
    assert [reason for *_, reason in gateway.kept.refused] == ["mail"]


@STREAM_OR_NOT
def test_messages_that_pass_are_masked_only_where_it_is_on(
    gateway, claude, upstream, stream
):
    body = {"model": "claude", "messages": PROMPT, "max_tokens": 5, "stream": stream}
    raw = json.dumps(body)
    upstream.script = (
        sends_events(*TEXT_STREAM, *stopped("end_turn")) if stream else answers(MESSAGE)
    )
    card = PolicyEntry("card", "mask", "both", pattern="card")
    policies(gateway, card)
    untouched = gateway.post(raw, path="/v1/messages").content
    assert upstream.requests[0].json["messages"] == PROMPT
    policies(gateway, replace(card, pass_through=True))
    answer = gateway.post(raw, path="/v1/messages").content
    if stream:  # the words come together
        assert b"Hello harbour" in answer
    else:
        assert answer == untouched
    assert "[card]" in json.dumps(upstream.requests[1].json)
    policies(gateway, PolicyEntry("no cards", "deny", pattern="card"))
    assert gateway.post(raw, path="/v1/messages").status_code == 400


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        (PolicyEntry("size", "deny", max_size=100), 400),
        (PolicyEntry("size", "deny", max_size=10_000), 200),
        (PolicyEntry("answer", "deny", "answer", max_size=5), 400),
        (PolicyEntry("tools", "deny", tools=("other",)), 400),
        (PolicyEntry("tools", "deny", tools=()), 400),
        (PolicyEntry("tools", "deny", tools=("tide", "other")), 200),
        (PolicyEntry("words", "deny", words=("my card",)), 400),
        (
            PolicyEntry(
                "elsewhere", "deny", words=("my card",), models=frozenset({"x"})
            ),
            200,
        ),
        (
            PolicyEntry("others", "deny", words=("my card",), tenants=frozenset({"x"})),
            200,
        ),
        (
            PolicyEntry("us", "deny", words=("my card",), tenants=frozenset({"acme"})),
            400,
        ),
        (PolicyEntry("own", "deny", python=f"{__name__}.spans"), 200),
    ],
)
def test_each_kind_of_rule_denies_what_it_is_about(gateway, upstream, entry, status):
    upstream.script = answers(COMPLETION)
    policies(gateway, entry)
    tool = {"type": "function", "function": {"name": "tide"}}
    assert post(gateway, V2, tools=[tool]).status_code == status


def test_own_code_may_return_spans_in_any_order(gateway, upstream):
    upstream.script = answers(COMPLETION)
    policies(gateway, PolicyEntry("own", "mask", python=f"{__name__}.spans"))
    messages = [
        {"role": "user", "content": "The ferry of noon"},
        {"role": "user", "content": 5},
    ]
    assert post(gateway, V2, messages=messages).status_code == 200
    assert upstream.requests[0].json["messages"][0]["content"] == "The [own]"


def test_what_is_no_text_stays(gateway, upstream):
    upstream.script = answers(COMPLETION)
    policies(gateway, PolicyEntry("all", "mask", words=("user", "tide", "png", "data")))
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": "tide"}]
    tools = [{"type": "function", "function": {"name": "tide", "description": "tide"}}]
    assert post(gateway, V2, messages=messages, tools=tools).status_code == 200
    sent = upstream.requests[0].json
    assert sent["messages"] == [messages[0], {"role": "user", "content": "[all]"}]
    assert sent["tools"][0]["function"] == {"name": "tide", "description": "[all]"}


def fails(text: str) -> list[tuple[int, int]]:
    """Own code of an operator that is wrong about one text."""
    if "harbour" in text:
        raise LookupError(text)
    return []


@STREAM_OR_NOT
def test_own_code_that_fails_fails_the_request(gateway, upstream, stream):
    gateway.change(request_log=LOG)
    text = "The harbour " + "is wide. " * 60
    upstream.script = says(text, stream=stream)
    policies(gateway, PolicyEntry("own", "mask", "answer", python=f"{__name__}.fails"))
    gateway.declare(retries=2, fallbacks=("other",))
    gateway.declare("other")
    response = post(gateway, V2, stream=stream)
    assert response.json() == {"detail": INTERNAL}
    assert response.status_code == gateway.recorded().status == 500
    assert len(upstream.requests) == 1  # the upstream did not fail


@STREAM_OR_NOT
def test_probabilities_do_not_repeat_what_is_masked(gateway, upstream, stream):
    policies(gateway, PolicyEntry("card", "mask", "answer", pattern="card"))
    tokens = {"content": [{"token": "4111"}]}
    part = chunk(CARD)
    part["choices"][0]["logprobs"] = tokens
    streamed = sends(event(part), event(chunk(finish="stop")), DONE)
    whole = answers(completion(CARD, logprobs=tokens))
    upstream.script = streamed if stream else whole
    answer = post(gateway, V1, stream=stream).text
    assert "[card]" in answer
    assert "4111" not in answer


def test_the_log_masks_what_an_upstream_repeats_in_its_error(gateway, upstream):
    gateway.change(request_log=LOG)
    policies(gateway, PolicyEntry("card", "mask", "answer", pattern="card"))
    upstream.script = answers({"error": {"message": f"I refuse {CARD}."}}, 400)
    assert post(gateway, V2).status_code == 400
    assert gateway.settled(lambda: gateway.kept.logged)
    assert gateway.kept.logged[0].error == "I refuse [card]."


NAMES = ("name", "id", "type", "model", "file", "description")


@pytest.mark.parametrize(
    "body",
    [
        {
            "content": [
                {"type": "tool_use", "name": "f", "input": dict.fromkeys(NAMES, CARD)}
            ]
        },
        {
            "content": [
                {"type": "tool_use", "input": {"a": [{"type": "base64", "data": CARD}]}}
            ]
        },
        {"function": {"name": "f", "arguments": {"name": CARD}}},
        {
            "input_schema": {
                "properties": {
                    n: {"type": "string", "description": CARD} for n in NAMES
                }
            }
        },
        {"parameters": {"$defs": {"name": {"enum": [CARD]}}}},
    ],
)
def test_members_of_a_tool_may_have_any_name(body):
    rules = (Rule.of(PolicyEntry("card", "mask", pattern="card")),)
    masked = Checks(rules, "messages").masked(body, rules, "request")
    assert CARD not in json.dumps(masked)
    assert json.dumps(masked) == json.dumps(body).replace(CARD, "[card]")


def test_names_of_required_members_stay():
    rules = (Rule.of(PolicyEntry("secret", "mask", words=("secret",))),)
    schema = {"properties": {"secret": {"type": "string"}}, "required": ["secret"]}
    checks = Checks(rules, "messages")
    assert checks.masked({"parameters": schema}, rules, "request") == {
        "parameters": schema
    }


@EVERY_PATH
def test_the_tokens_of_a_denied_answer_count(gateway, upstream, path):
    policies(gateway, PolicyEntry("no cards", "deny", "answer", pattern="card"))
    upstream.script = says("x" * 100, CARD, stream=True)
    assert post(gateway, path, stream=True).status_code == 400
    usage, is_estimated = gateway.recorded().counted()
    assert usage is not None
    assert (usage.completion_tokens, is_estimated) == (30, True)


@STREAM_OR_NOT
def test_a_denied_answer_is_charged_to_the_model_that_gave_it(
    gateway, upstream, stream
):
    policies(gateway, PolicyEntry("no cards", "deny", "answer", pattern="card"))
    gateway.declare(fallbacks=("other",))
    gateway.declare("other")
    good = says(CARD, stream=stream)

    async def script(received: Any) -> None:
        is_first = len(upstream.requests) == 1
        await (answers({}, 500) if is_first else good)(received)

    upstream.script = script
    assert post(gateway, V2, stream=stream).status_code == 400
    assert gateway.recorded().endpoint.name == "other"

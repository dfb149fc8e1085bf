"""POST /v2/chat/completions: what a caller sends, what it gets, and that it is authenticated."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import requests

from gateway.configuration.shapes import Allow, Target
from tests.gateway.chat.harness import IDENTITY, MESSAGES
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    HEAD,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    sends,
)
from tests.running import PATIENCE_S


@pytest.mark.spec("gateway", "stream is false or absent: one chat completion response")
@pytest.mark.parametrize("stream", [{}, {"stream": False}, {"stream": None}])
def test_without_stream_one_completion_comes_back_unchanged_but_for_its_model(
    gateway, upstream, stream
):
    upstream.script = answers(COMPLETION)

    response = gateway.post(**stream)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == {**COMPLETION, "model": "small"}


@pytest.mark.spec("gateway", "model names the endpoint")
def test_every_field_but_model_goes_to_the_upstream_unchanged(gateway, upstream):
    upstream.script = answers(COMPLETION)
    fields = {
        "temperature": 0.1,
        "seed": 123456789012345678901234567890,
        "metadata": {"nothing": None, "é": "ü"},
        "stop": ["\n"],
    }

    gateway.post(**fields)

    (options,) = upstream.requests
    assert options.path == "/v1/chat/completions"
    assert options.json == {"model": "upstream-model", "messages": MESSAGES, **fields}
    assert b"123456789012345678901234567890" in options.body
    assert options.headers["authorization"] == "Bearer sk-upstream"


@pytest.mark.spec(
    "gateway", "stream is true: a server-sent event stream of JSON chunks"
)
@pytest.mark.spec("gateway", "one response or a server-sent event stream of chunks")
def test_a_stream_is_chunks_without_empty_fields_and_usage_in_the_last(
    gateway, upstream
):
    upstream.script = sends(*WHOLE_STREAM)

    first, second, last = gateway.stream()

    expected = {k: v for k, v in HEAD.items() if v is not None} | {"model": "small"}
    assert first == {**expected, "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
    assert second == {**expected, "choices": [{"index": 0, "delta": {"content": "lo"}}]}
    assert last == {
        **expected,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": USAGE,
    }


@pytest.mark.parametrize("choices", [[], [{"index": 0, "delta": {}}]])
def test_a_chunk_of_usage_alone_is_merged_into_the_last(gateway, upstream, choices):
    usage = event({**USAGE_CHUNK, "choices": choices})
    upstream.script = sends(*STREAM, usage, DONE)
    *_, last = gateway.stream()
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"] == USAGE


@pytest.mark.spec("gateway", "Fields with no value are omitted from chunks")
def test_only_null_members_are_omitted(gateway, upstream):
    odd: Any = {"a": None, "b": [None, {"c": None}], "d": "", "e": [], "f": {}, "g": 0}
    upstream.script = sends(event({**chunk("x"), "odd": odd}), DONE)

    (only,) = gateway.stream()

    assert only["odd"] == {"b": [None, {}], "d": "", "e": [], "f": {}, "g": 0}


def test_echo_repeats_the_text_of_a_message_in_parts(gateway):
    gateway.declare(name="echo", upstream="echo", targets=(Target("", "echo-0ms"),))
    parts = [{"type": "text", "text": "one"}, {"type": "image_url"}, 5]
    parts.append({"type": "text", "text": " two"})
    response = gateway.post(model="echo", messages=[{"role": "user", "content": parts}])
    assert response.json()["choices"][0]["message"]["content"] == "one two"


def test_a_chunk_that_needs_no_change_keeps_its_bytes(gateway, upstream):
    gateway.declare(name="upstream-model")
    raw = b'{ "model":"upstream-model" , "n": 1.50, "choices":[{"finish_reason":"stop"}] }'
    raw_early = raw.replace(b'"finish_reason":"stop"', b'"index": 0')
    upstream.script = sends(event(raw_early), event(raw), DONE)

    response = gateway.post(model="upstream-model", stream=True)

    assert response.content.startswith(event(raw_early))


def test_a_stream_has_the_headers_that_keep_proxies_from_holding_it_back(
    gateway, upstream
):
    upstream.script = sends(*WHOLE_STREAM)

    response = gateway.post(stream=True, headers={"Accept": "application/json"})

    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*"])
def test_accept_is_ignored(gateway, upstream, accept):
    upstream.script = answers(COMPLETION)
    assert gateway.post(headers={"Accept": accept}).status_code == 200


def test_a_well_formed_request_id_is_kept_and_another_is_replaced(gateway, upstream):
    upstream.script = answers(COMPLETION)

    for text in ("req.1-a_B", "x" * 128):
        kept = gateway.post(headers={"X-Request-Id": text})
        assert kept.headers["X-Request-Id"] == text
        assert upstream.requests[-1].headers["x-request-id"] == text
    for text in ("two words", "x" * 129, "é", ""):
        response = gateway.post(headers={"X-Request-Id": text.encode()})
        assert re.fullmatch("[0-9a-f]{32}", response.headers["X-Request-Id"])
        assert (
            upstream.requests[-1].headers["x-request-id"]
            == response.headers["X-Request-Id"]
        )


@pytest.mark.spec("gateway", "usage is recorded in the background after the response")
@pytest.mark.parametrize("stream", [False, True])
def test_usage_is_recorded(gateway, upstream, stream):
    upstream.script = sends(*WHOLE_STREAM) if stream else answers(COMPLETION)

    gateway.post(stream=stream)

    assert gateway.settled(lambda: gateway.kept.ended)
    (context,) = gateway.kept.ended
    assert (context.usage.prompt_tokens, context.usage.completion_tokens) == (9, 2)
    assert (context.status, context.error_status) == (200, 0)
    assert context.caller.principal == "ada"
    assert (context.first_chunk_s is not None) == stream


@pytest.mark.spec("gateway", "Usage (on response or final chunk, optional)")
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_without_usage_is_passed_on_without(gateway, upstream, stream):
    whole = {name: it for name, it in COMPLETION.items() if name != "usage"}
    upstream.script = sends(*STREAM, DONE) if stream else answers(whole)

    response = gateway.post(stream=stream)

    assert response.status_code == 200
    assert "usage" not in response.text
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].usage is None


def test_usage_is_asked_for_upstream_unless_the_endpoint_says_no(gateway, upstream):
    gateway.declare(name="silent", stream_usage=False)
    upstream.script = sends(*STREAM, DONE)

    gateway.stream()
    gateway.stream(stream_options={"x": 1, "include_usage": False})
    gateway.stream(stream_options=[1])
    gateway.stream(model="silent")

    options = [request.json.get("stream_options") for request in upstream.requests]
    assert options == [
        {"include_usage": True},
        {"x": 1, "include_usage": True},
        [1],
        None,
    ]


@pytest.mark.spec("gateway", "Chat completions: requires an authenticated user")
@pytest.mark.parametrize(
    ("_case", "headers"),
    [
        ("no identity", {}),
        ("half an identity", {"X-Tenant-Id": "acme"}),
        ("a malformed tenant", {"X-Tenant-Id": "a b", "X-Principal-Id": "ada"}),
        ("forwarded", {**IDENTITY, "X-Forwarded-For": "127.0.0.1"}),
        ("Forwarded", {**IDENTITY, "Forwarded": "for=127.0.0.1"}),
        ("an unknown key", {**IDENTITY, "Authorization": "Bearer nonsense"}),
    ],
)
def test_without_a_sound_identity_nothing_reaches_the_upstream(
    gateway, upstream, _case, headers
):
    body = json.dumps({"model": "small", "messages": MESSAGES})

    response = requests.post(
        f"{gateway.url}/v2/chat/completions",
        data=body,
        headers=headers,
        timeout=PATIENCE_S,
    )

    assert response.status_code == 401
    assert set(response.json()) == {"detail"}
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert upstream.requests == []


def test_identity_headers_given_twice_are_refused(gateway):
    raw = [("X-Tenant-Id", "acme"), ("X-Tenant-Id", "globex"), ("X-Principal-Id", "a")]
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    connection.putrequest("POST", "/v2/chat/completions")
    for name, value in [*raw, ("Content-Length", "2")]:
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    assert connection.getresponse().status == 401
    connection.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.spec("gateway", "/chat/completions and /v2/chat/completion")
@pytest.mark.spec("gateway", "management paths carry /v1, chat /v2, the signature v1")
def test_other_methods_are_refused(gateway, method):
    response = requests.request(
        method,
        f"{gateway.url}/v2/chat/completions",
        headers=IDENTITY,
        timeout=PATIENCE_S,
    )
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
    assert set(response.json()) == {"detail"}


@pytest.mark.parametrize(
    ("allow", "admitted"),
    [
        (Allow(), True),
        (Allow(everyone=False, tenants=frozenset({"acme"})), True),
        (Allow(everyone=False, principals=frozenset({("acme", "ada")})), True),
        (Allow(everyone=False, tenants=frozenset({"globex"})), False),
        (Allow(everyone=False, principals=frozenset({("globex", "ada")})), False),
        (Allow(everyone=False), False),
    ],
)
def test_an_endpoint_is_for_whom_it_allows(gateway, upstream, allow, admitted):
    gateway.declare(allow=allow)
    upstream.script = answers(COMPLETION)

    response = gateway.post()

    assert response.status_code == (200 if admitted else 404)
    assert len(upstream.requests) == admitted
    assert len(gateway.kept.denied) == (not admitted)

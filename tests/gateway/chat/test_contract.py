"""POST /v2/chat/completions: what a caller sends, what it gets, and that it is authenticated."""

import asyncio
import gzip
import http.client
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from gateway import keys
from gateway.chat import asgi, service
from gateway.chat.targets import Router
from gateway.configuration.shapes import Allow, Target
from tests.gateway.chat.harness import (
    IDENTITY,
    INTERNAL,
    MESSAGES,
    REQUEST_ID,
    STREAM_OR_NOT,
    V2,
    raw_request,
    status_and_detail,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    HEAD,
    NEVER,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    sends,
)
from webhooks_core.models import bearer

# ── Responses ───────────────────────────────────────────────────────────────────────


@pytest.mark.spec("gateway", "stream is false or absent: one chat completion response")
@pytest.mark.parametrize("stream", [{}, {"stream": False}, {"stream": None}])
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*"])
def test_without_stream_one_completion_comes_back_unchanged_but_for_its_model(
    gateway, upstream, stream, accept
):
    upstream.script = answers(COMPLETION)
    response = gateway.post(headers={"Accept": accept}, **stream)
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
    gateway.post(b'{"model": "small"}')  # whether messages are missing is not ours

    request, bare = upstream.requests
    assert request.path == "/v1/chat/completions"
    assert request.json == {"model": "upstream-model", "messages": MESSAGES, **fields}
    assert b"123456789012345678901234567890" in request.body
    assert request.headers["authorization"] == "Bearer sk-upstream"
    assert bare.json == {"model": "upstream-model"}


@pytest.mark.spec(
    "gateway",
    "/chat/completions and /v2/chat/completion",
    "management paths carry /v1, chat /v2, the signature v1",
    "stream is true: a server-sent event stream of JSON chunks",
)
@pytest.mark.spec("gateway", "one response or a server-sent event stream of chunks")
@pytest.mark.parametrize("path", [V2, "/v2/chat/completion", "/chat/completions"])
def test_a_stream_is_chunks_without_empty_fields_and_usage_in_the_last(
    gateway, upstream, path
):
    upstream.script = sends(*WHOLE_STREAM)

    first, second, last = gateway.stream(
        path=path, headers={"Accept": "application/json"}
    )

    expected = {k: v for k, v in HEAD.items() if v is not None} | {"model": "small"}
    assert first == {**expected, "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
    assert second == {**expected, "choices": [{"index": 0, "delta": {"content": "lo"}}]}
    assert last == {
        **expected,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": USAGE,
    }


def test_a_chunk_of_usage_alone_is_merged_into_the_last(gateway, upstream):
    usage = event({**USAGE_CHUNK, "choices": [{"index": 0, "delta": {}}]})
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
    before = int(time.time())
    response = gateway.post(model="echo", messages=[{"role": "user", "content": parts}])
    assert response.json()["choices"][0]["message"]["content"] == "one two"
    assert before <= response.json()["created"] <= time.time()


def test_a_chunk_that_needs_no_change_keeps_its_bytes(gateway, upstream):
    gateway.declare(name="upstream-model")
    raw = b'{ "model":"upstream-model" , "n": 1.50, "choices":[{"finish_reason":"stop"}] }'
    raw_early = raw.replace(b'"finish_reason":"stop"', b'"index": 0')
    upstream.script = sends(event(raw_early), event(raw), DONE)
    response = gateway.post(model="upstream-model", stream=True)
    assert response.content.startswith(event(raw_early))
    # No proxy may hold it back.
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"


def test_a_well_formed_request_id_is_kept_and_another_is_replaced(gateway, upstream):
    upstream.script = answers(COMPLETION)
    kept = ("req.1-a_B", "x" * 128)
    for text in (*kept, "two words", "x" * 129, "é", ""):
        response = gateway.post(headers={"X-Request-Id": text.encode()})
        request_id = response.headers["X-Request-Id"]
        expected = re.escape(text) if text in kept else "[0-9a-f]{32}"
        assert re.fullmatch(expected, request_id)
        assert upstream.requests[-1].headers["x-request-id"] == request_id


# ── Usage ───────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("gateway", "Usage (on response or final chunk, optional)")
@STREAM_OR_NOT
def test_an_answer_without_usage_is_passed_on_without(gateway, upstream, stream):
    whole = {name: value for name, value in COMPLETION.items() if name != "usage"}
    upstream.script = sends(*STREAM, DONE) if stream else answers(whole)
    response = gateway.post(stream=stream)
    assert response.status_code == 200
    assert "usage" not in response.text
    assert gateway.recorded().is_estimated


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": {"x": 1, "include_usage": False}}, {"x": 1, "include_usage": True}),
        ({"stream_options": [1]}, [1]),
        ({"model": "silent"}, None),
    ],
)  # fmt: skip
def test_usage_is_asked_for_upstream_unless_the_endpoint_says_no(
    gateway, upstream, fields, options
):
    gateway.declare(name="silent", stream_usage=False)
    upstream.script = sends(*STREAM, DONE)
    gateway.stream(**fields)
    assert upstream.requests[0].json.get("stream_options") == options


# ── Callers ─────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("gateway", "Chat completions: requires an authenticated user")
@pytest.mark.parametrize(
    ("_case", "headers"),
    [
        ("a tenant given twice", [*IDENTITY.items(), ("X-Tenant-Id", "globex")]),
        ("forwarded", [*IDENTITY.items(), ("X-Forwarded-For", "127.0.0.1")]),
        ("Forwarded", [*IDENTITY.items(), ("Forwarded", "for=127.0.0.1")]),
    ],
)
def test_without_a_sound_identity_nothing_reaches_the_upstream(
    gateway, upstream, _case, headers
):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    connection.putrequest("POST", V2)
    for name, value in [*headers, ("Content-Length", "2")]:
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    response = connection.getresponse()
    assert response.status == 401
    assert response.read().startswith(b'{"detail":')
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert upstream.requests == []
    connection.close()


@pytest.mark.parametrize(
    ("allow", "admitted"),
    [
        (Allow(), True),
        (Allow(everyone=False, tenants=frozenset({"acme"})), True),
        (Allow(everyone=False, principals=frozenset({"acme/ada"})), True),
        (Allow(everyone=False, tenants=frozenset({"globex"})), False),
        (Allow(everyone=False, principals=frozenset({"globex/ada"})), False),
        (Allow(everyone=False), False),
    ],
)
def test_an_endpoint_is_for_whom_it_allows(gateway, upstream, allow, admitted):
    gateway.declare(allow=allow)
    upstream.script = answers(COMPLETION)
    assert gateway.post().status_code == (200 if admitted else 404)
    assert len(upstream.requests) == admitted
    assert len(gateway.kept.denied) == (not admitted)


# ── Bodies ──────────────────────────────────────────────────────────────────────────


def test_a_compressed_body_is_refused(gateway, upstream):
    body, headers = gzip.compress(b'{"model": "small"}'), {"Content-Encoding": "gzip"}
    response = gateway.post(body, headers=headers)
    assert response.status_code == 415
    assert "Content-Encoding" in response.text
    assert upstream.requests == []


def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(gateway, upstream):
    upstream.script = answers(COMPLETION)
    largest = b'{"model": "small"}'.ljust(20 * 1024 * 1024)
    assert gateway.post(largest).status_code == 200
    too_large = gateway.post(largest + b" ", headers=REQUEST_ID)
    assert status_and_detail(too_large)[0] == 413


# Under WSGI, Django takes a body without a length for none.
def test_a_body_without_a_length_is_counted_as_it_comes(gateway):
    parts = (b" " * 1024 * 1024 for _ in range(21))
    assert status_and_detail(gateway.post(parts, headers=REQUEST_ID))[0] == 413


@pytest.mark.parametrize("part", ["half", "none"])
def test_a_body_that_does_not_end_is_a_bad_request(
    gateway, upstream, monkeypatch, part
):
    monkeypatch.setattr(asgi, "RECEIVE_S", 0.2)
    request = raw_request().replace(b"Content-Length: ", b"Content-Length: 9")
    if part == "none":
        request = request.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    with gateway.connected(request) as client:
        response = b"".join(iter(lambda: client.recv(10_000), b""))
    assert response.startswith(b"HTTP/1.1 400")
    assert response.endswith(b'{"detail":"The body took too long to arrive."}')
    assert upstream.requests == []


# ── Failures of our own ─────────────────────────────────────────────────────────────


def fail(*_: object) -> None:
    raise RuntimeError("a bug with a secret")


@STREAM_OR_NOT
def test_an_unforeseen_failure_tells_nothing(gateway, monkeypatch, stream):
    with monkeypatch.context() as patch:
        patch.setattr(Router, "order", fail)
        response = gateway.post(headers=REQUEST_ID, stream=stream)
    assert status_and_detail(response) == (500, INTERNAL)
    assert gateway.recorded().status == 500
    monkeypatch.setattr(gateway.known, "endpoints", fail)  # before the call
    response = gateway.post(headers=REQUEST_ID, stream=stream)
    assert status_and_detail(response) == (500, INTERNAL)


def test_a_database_that_hangs_is_unavailable(gateway, monkeypatch):
    async def hang(_: object) -> None:
        await asyncio.sleep(NEVER)

    monkeypatch.setattr(service, "LOOK_UP_S", 0.05)
    gateway.service = replace(gateway.service, in_thread=hang)
    unknown = {"Authorization": f"Bearer {bearer.make(keys.PREFIX)}"}
    response = gateway.post(headers={**REQUEST_ID, **unknown})
    assert status_and_detail(response)[0] == 503
    assert int(response.headers["Retry-After"]) > 0

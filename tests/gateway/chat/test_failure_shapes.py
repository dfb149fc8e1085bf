"""Failures in the shapes of many servers: none passes as a success, and no reason is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.chat.harness import (
    INTERNAL,
    REQUEST_ID,
    UPSTREAM,
    status_and_detail,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    WHOLE_STREAM,
    Script,
    answers,
    chunk,
    event,
    sends,
)

REFUSED = "The upstream refused the request."
TOO_LONG = "the request exceeds the available context size"
PYDANTIC: list[dict[str, Any]] = [
    {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "Field required", "input": {}},
    {"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra inputs are not permitted"},
]  # fmt: skip
PYDANTIC_TEXT = (
    "body.messages.0.role: Field required; body.store: Extra inputs are not permitted"
)
REASONS = [
    ("text alone", {"error": "plain"}, "plain"),
    ("flat", {"message": "flat"}, "flat"),
    ("deep", {"error": {"message": {"message": "deep"}}}, "deep"),
    ("FastAPI", {"detail": "of FastAPI"}, "of FastAPI"),
    ("FastAPI's validation", {"detail": PYDANTIC}, PYDANTIC_TEXT),
    ("Mistral's validation", {"object": "error", "message": {"detail": PYDANTIC}, "type": "invalid_request_error"}, PYDANTIC_TEXT),
    ("Mistral", {"object": "error", "message": "no role", "type": "invalid_request_error"}, "no role"),
    ("a place that is text", {"detail": [{"loc": "body", "msg": "wrong"}]}, "wrong"),
    ("texts in a list", {"error": ["wrong `top_p`", "wrong `seed`"]}, "wrong `top_p`; wrong `seed`"),
    ("Cloudflare", {"success": False, "errors": [{"code": 5004, "message": "one"}, {"code": 5006, "message": "two"}], "messages": [], "result": {}}, "one; two"),
    ("watsonx", {"errors": [{"code": "invalid", "message": "no model"}], "trace": "x", "status_code": 400}, "no model"),
    ("Gemini", [{"error": {"code": 400, "message": "Cannot find field.", "status": "INVALID_ARGUMENT"}}], "Cannot find field."),
    ("Spring", {"timestamp": "x", "status": 400, "error": "Bad Request", "message": "no role", "path": "/"}, "no role"),
    ("NVIDIA", {"type": "about:blank", "status": 400, "title": "Bad Request", "detail": "no role"}, "no role"),
    ("ASP.NET", {"title": "One or more", "status": 400, "errors": {"messages": ["is required"], "n": ["too large"]}}, "messages: is required; n: too large"),
    ("ASP.NET with a detail", {"title": "Bad", "detail": "See errors.", "errors": {"n": ["too large"]}}, "See errors.; n: too large"),
    ("Laravel", {"message": "Wrong.", "errors": {"messages": ["is required"], "n": ["too large"]}}, "Wrong.; messages: is required; n: too large"),
    ("Laravel's field with this name", {"message": "Wrong.", "errors": {"message": ["is required"], "n": ["too large"]}}, "Wrong.; message: is required; n: too large"),
    ("a list of errors beside a message", {"message": "Wrong.", "errors": [{"field": "n", "message": "too large"}]}, "Wrong.; too large"),
    ("errors within the error", {"error": {"message": "Wrong.", "errors": [{"message": "too large"}]}}, "Wrong.; too large"),
    ("errors beside the error", {"error": {"message": "Wrong."}, "errors": {"n": "too large"}}, "Wrong.; n: too large"),
    ("OData", {"error": {"code": "BadArgument", "message": "Wrong.", "details": [{"target": "n", "message": "too large"}]}}, "Wrong.; too large"),
    ("Google's older form", {"error": {"code": 400, "message": "Wrong.", "errors": [{"message": "Wrong.", "domain": "global"}]}}, "Wrong."),
    ("errors that say nothing", {"message": "Wrong.", "errors": []}, "Wrong."),
    ("FastAPI's validation beside a message", {"message": "Wrong.", "detail": PYDANTIC}, f"Wrong.; {PYDANTIC_TEXT}"),
    ("Bedrock", {"Message": "no access"}, "no access"),
    ("OAuth", {"error": "invalid_request", "error_description": "no role"}, "no role"),
    ("Text Generation Inference", {"error": "`inputs` must", "error_type": "validation"}, "`inputs` must"),
    ("xAI", {"code": "Client specified an invalid argument", "error": "no role"}, "no role"),
    ("MiniMax", {"base_resp": {"status_code": 2013, "status_msg": "no role"}, "choices": None}, "no role"),
    ("Baidu", {"error_code": 336003, "error_msg": "no role"}, "no role"),
    ("other names", {"code": 400, "msg": "no role", "data": None}, "no role"),
    ("OpenRouter", {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no role", "provider_name": "x"}}}, "Provider returned error: no role"),
    ("blank text", {"error": {"message": " ", "detail": "no role"}}, "no role"),
    ("the request repeated", {"detail": [PYDANTIC[0] | {"input": "x" * 300_000}]}, PYDANTIC_TEXT.partition("; ")[0]),
    ("no known shape", {"wrong": {"role": 5}}, '{"wrong":{"role":5}}'),
    ("no text", {"error": {"message": 5}}, '{"error":{"message":5}}'),
    ("plain text", b"text", "text"),
    ("a long plain text", b"x" * 1_000_000, "x" * 1000),
    ("a list", [5], "[5]"),
    ("an empty list", [], REFUSED),
    ("an empty object", {}, REFUSED),
    ("nothing", b"", REFUSED),
    ("deep nesting", b'{"a":' + b"[" * 1010 + b"]" * 1010 + b"}", REFUSED),
    ("a long unknown shape", {"wrong": "x" * 5000}, '{"wrong":"' + "x" * 990),
]  # fmt: skip


@pytest.mark.spec("gateway", "synchronous: Invalid value or invalid request, 400")
@pytest.mark.parametrize(("_case", "body", "reason"), REASONS)
def test_the_reason_of_a_refusal_is_found_in_every_known_shape(
    gateway, upstream, _case, body, reason
):
    upstream.script = answers(body, 422)
    for stream in (False, True):
        response = gateway.post(stream=stream)
        assert (response.status_code, response.json()) == (400, {"detail": reason})


# What servers send with status 200: the JSON, and its reason if it is a refusal.
FAILURES: list[tuple[str, Any, str | None]] = [
    ("OpenAI", {"error": {"message": TOO_LONG, "code": 400}}, TOO_LONG),
    ("vLLM", {"object": "error", "message": TOO_LONG, "type": "BadRequestError", "param": None, "code": 400}, TOO_LONG),
    ("vLLM's own failure", {"object": "error", "message": "secret", "code": 500}, None),
    ("flat without a status", {"object": "error", "message": "secret"}, None),
    ("Mistral", {"object": "error", "message": {"detail": PYDANTIC}, "type": "invalid_request_error"}, PYDANTIC_TEXT),
    ("a status beside the error", {"error": {"message": TOO_LONG}, "status_code": 422}, TOO_LONG),
    ("a status beside a text", {"error": TOO_LONG, "code": "400"}, TOO_LONG),
    ("a text alone", {"error": "secret"}, None),
    ("Text Generation Inference", {"error": TOO_LONG, "error_type": "validation"}, TOO_LONG),
    ("overloaded", {"error": "secret", "error_type": "overloaded"}, None),
    ("Cloudflare", {"success": False, "errors": [{"code": 5004, "message": "secret"}]}, None),
    ("errors alone", {"errors": [{"message": "secret"}]}, None),
    ("FastAPI", {"detail": "secret"}, None),
    ("a message alone", {"message": "Internal server error secret"}, None),
    ("code and msg", {"code": 400, "msg": TOO_LONG}, TOO_LONG),
    ("MiniMax", {"choices": None, "base_resp": {"status_code": 1004, "status_msg": "secret"}}, None),
    ("Gemini", [{"error": {"message": TOO_LONG, "code": 400}}], TOO_LONG),
    ("Anthropic", {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}, TOO_LONG),
    ("OpenRouter", {**COMPLETION, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 400, "message": TOO_LONG}}]}, TOO_LONG),
    ("OpenRouter, beside choices", {**chunk(""), "error": {"code": 502, "message": "secret"}}, None),
    ("a finish reason alone", chunk("secret", "error"), None),
]  # fmt: skip
FORMS: dict[str, Callable[[Any], Script]] = {
    "an event": lambda body: sends(event(body), DONE),
    "the body": answers,
    "the body, with an empty line": lambda body: answers(json.dumps(body).encode() + b"\n\n"),
    "an event without its end": lambda body: sends(event(body).rstrip()),
}  # fmt: skip


@pytest.mark.parametrize(("_case", "body", "reason"), FAILURES)
def test_a_failure_with_status_200_is_no_answer(gateway, upstream, _case, body, reason):
    upstream.script = answers(body)
    refused = (400, reason)
    response = gateway.post(headers=REQUEST_ID)
    assert status_and_detail(response) == (refused if reason else (500, UPSTREAM))
    gateway.declare(name="vectors", inference_type="embedding")
    if "choices" not in body:
        fields = {"path": "/v1/embeddings", "model": "vectors", "headers": REQUEST_ID}
        assert gateway.post(**fields).json()["error"]["message"] == (reason or UPSTREAM)
    for form in FORMS.values():  # in place of the first chunk
        upstream.script = form(body)
        response = gateway.post(stream=True, headers=REQUEST_ID)
        assert status_and_detail(response) == (refused if reason else (500, INTERNAL))
        assert gateway.kept.ended.pop().status == response.status_code
    gateway.kept.ended.clear()
    upstream.script = sends(STREAM[0], event(body), DONE)
    first, last = gateway.stream(headers=REQUEST_ID)
    assert text_of([first]) == "Hel"
    status, text = refused if reason else (500, UPSTREAM)
    assert last["error"]["status_code"] == status == gateway.recorded().error_status
    assert last["error"]["content"]["error"] == text


REFUSAL = json.dumps({"code": 400, "message": TOO_LONG}).encode()
# Events that are errors by their form, and their reason if they refuse the request.
ODD_EVENTS: list[tuple[str, bytes, str | None]] = [
    ("llama.cpp", b"error: " + REFUSAL + b"\n\n", TOO_LONG),
    ("no space", b"error:" + REFUSAL + b"\n\n", TOO_LONG),
    ("carriage returns", b"error: " + REFUSAL + b"\r\n\r\n", TOO_LONG),
    ("wrapped", b'error: {"error": ' + REFUSAL + b"}\n\n", TOO_LONG),
    ("behind a comment", b": ping\nerror: " + REFUSAL + b"\n\n", TOO_LONG),
    ("an event named error", b"event: error\ndata: " + REFUSAL + b"\n\n", TOO_LONG),
    ("a name behind the data", b"data: " + REFUSAL + b"\nevent:error\n\n", TOO_LONG),
    ("several lines", b'event: error\ndata: {"code": 400,\ndata: "message": "%s"}\n\n' % TOO_LONG.encode(), TOO_LONG),
    ("JSON in place of an event", b'{"error": ' + REFUSAL + b"}\n\n", TOO_LONG),
    ("JSON of several lines", json.dumps({"error": json.loads(REFUSAL)}, indent=1).encode() + b"\n\n", TOO_LONG),
    ("half a surrogate pair", b'event: error\ndata: {"code":400,"message":"no \\ud83d"}\n\n', "no \ud83d"),
    ("text", b"event: error\ndata: overloaded\n\n", None),
    ("text in a field named error", b"error: overloaded\n\n", None),
    ("quotes", b'event: error\ndata: {"message": "an \\"error\\" of \\"error\\""}\n\n', None),
    ("a type alone", b'event: error\ndata: {"type": "error"}\n\n', None),
    ("null", b"event: error\ndata: null\n\n", None),
    ("an empty object", b"error: {}\n\n", None),
    ("many values", b'event: error\ndata: {"a": [' + b"[]," * 200_000 + b"1]}\n\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("_case", "odd", "reason"), ODD_EVENTS)
@pytest.mark.parametrize("ends", [b"", DONE])
def test_an_error_that_is_no_ordinary_event_is_an_error(
    gateway, claude, upstream, ends, _case, odd, reason
):
    upstream.script = sends(odd + ends)
    for post in (gateway.post, claude):
        response = post(stream=True, headers=REQUEST_ID)
        assert status_and_detail(response) == (
            (400, reason) if reason else (500, INTERNAL)
        )
    upstream.script = sends(STREAM[0] + odd + ends)
    last = gateway.stream(headers=REQUEST_ID)[-1]
    assert last["error"]["content"]["error"] == (reason or UPSTREAM)


# Events that are neither chunks nor failures of a known shape.
UNKNOWN = [
    *({"fault": {"faultstring": "secret"}}, {"code": 500}, {}, {"content": "secret"}),
    *({"choices": None}, {"choices": {}}, {"usage": None}, {"usage": {}}),
]


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_an_event_without_choices_or_usage_is_no_chunk(gateway, upstream, unknown):
    for end in ((), (DONE,), (event(unknown), DONE)):
        upstream.script = sends(event(unknown), *end)
        assert gateway.post(stream=True).json() == {"detail": INTERNAL}
    upstream.script = sends(event(unknown), event(unknown), *WHOLE_STREAM)
    *_, last = events = gateway.stream()
    assert text_of([item for item in events if item.get("choices")]) == "Hello"
    assert last["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "body",
    [{"error": {"message": TOO_LONG, "type": "invalid_request_error"}}, FAILURES[1][1]],
)
def test_a_refusal_in_place_of_a_message_of_anthropic_keeps_its_reason(
    claude, upstream, body
):
    upstream.script = answers(body)
    for stream in (False, True):
        response = claude(stream=stream)
        assert (response.status_code, response.json()) == (400, {"detail": TOO_LONG})


@pytest.mark.parametrize(
    "more",
    [
        *({"error": None}, {"error": ""}, {"error": {}}, {"success": True}),
        *({"base_resp": {"status_code": 0}}, {"message": "x", "detail": "y"}),
    ],
)
def test_an_answer_with_an_empty_error_is_an_answer(gateway, upstream, more):
    upstream.script = answers({**COMPLETION, **more})
    assert gateway.post().status_code == 200
    upstream.script = sends(event({**chunk("Hello"), **more}), STREAM[2], DONE)
    assert text_of(gateway.stream()) == "Hello"

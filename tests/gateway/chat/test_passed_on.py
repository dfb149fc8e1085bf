"""What OpenAI's clients read in an error of the upstream arrives on /v1, and on /v2 the tables hold."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import (
    INTERNAL,
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
    V1,
)
from tests.gateway.chat.mock_upstream import STREAM, answers, event, sends


def error_of(
    message: str, kind: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


SECRET = "Rate limit reached in organization org-secret"
LIMITED = error_of(SECRET, "tokens", code="rate_limit_exceeded")
LONG = "This model's maximum context length is 8192 tokens."
TOO_LONG = error_of(
    LONG, "invalid_request_error", "messages", "context_length_exceeded"
)
NO_ERROR = error_of("no", "invalid_request_error")
OVERLOADED = {"type": "overloaded_error", "code": "overloaded", "message": "secret"}
DATE = "Wed, 21 Oct 2065 07:28:00 GMT"


def post(gateway, **fields: Any) -> Any:
    return gateway.post(**{"path": V1, "headers": REQUEST_ID, **fields})


@STREAM_OR_NOT
@pytest.mark.parametrize("value", ["7", DATE])
def test_a_limit_of_the_upstream_is_passed_on(gateway, upstream, stream, value):
    upstream.script = answers(LIMITED, 429, Retry_After=value)
    response = post(gateway, stream=stream)
    assert (response.status_code, response.headers["Retry-After"]) == (429, value)
    text = INTERNAL if stream else UPSTREAM
    assert response.json() == error_of(text, "tokens", code="rate_limit_exceeded")
    assert gateway.kept.ended[0].status == 429
    on_v2 = gateway.post(stream=stream, headers=REQUEST_ID)
    assert (on_v2.status_code, on_v2.json()) == (500, {"detail": text})
    assert "Retry-After" not in on_v2.headers


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-1", "1.5", "7; x", "9" * 9, "\u0667", "Wed, 99 Oct 2065 07:28:00 GMT"],
)  # fmt: skip
def test_a_wrong_retry_after_is_not_passed_on(gateway, upstream, value):
    upstream.script = answers({}, 429, Retry_After=value)
    response = post(gateway)
    assert response.status_code == 429
    assert "Retry-After" not in response.headers
    expected = error_of(UPSTREAM, "rate_limit_error", code="rate_limit_exceeded")
    assert response.json() == expected


@STREAM_OR_NOT
def test_the_code_of_a_refusal_is_passed_on(gateway, upstream, stream):
    refusals = [answers(TOO_LONG, 400)] + [sends(event(TOO_LONG))] * stream
    for script in refusals:
        upstream.script = script
        response = post(gateway, stream=stream)
        assert (response.status_code, response.json()) == (400, TOO_LONG)
        on_v2 = gateway.post(stream=stream, headers=REQUEST_ID)
        assert on_v2.json() == {"detail": LONG}


def test_the_code_of_any_other_failure_is_passed_on(gateway, upstream):
    upstream.script = answers({"error": OVERLOADED}, 503, Retry_After="3")
    response = post(gateway)
    assert response.status_code == 500
    assert "Retry-After" not in response.headers
    expected = error_of(UPSTREAM, "overloaded_error", code="overloaded")
    assert response.json() == expected


@pytest.mark.parametrize("path", ["/v1/embeddings", V1])
def test_errors_in_the_flat_shape_of_vllm_are_understood(gateway, upstream, path):
    if path == "/v1/embeddings":
        gateway.declare(inference_type="embedding")
    flat = {"object": "error", "message": "no", "type": "BadRequestError", "code": 400}
    upstream.script = answers({**flat, "param": "input"}, 400)
    assert post(gateway, path=path).json() == error_of("no", "BadRequestError", "input")


@pytest.mark.parametrize(
    "value", ["", "x" * 201, "a\r\nb", "\x00", 5, True, [], {}, None]
)
def test_what_is_no_name_is_not_passed_on(gateway, upstream, value):
    for name in ("type", "param", "code"):
        upstream.script = answers({"error": {"message": "no", name: value}}, 400)
        assert post(gateway).json() == NO_ERROR


def test_a_limit_in_place_of_the_first_chunk_is_passed_on(gateway, upstream):
    upstream.script = sends(event({"error": {"code": 429, "type": "limited"}}))
    response = post(gateway, stream=True)
    assert (response.status_code, response.json()["error"]["type"]) == (429, "limited")


@pytest.mark.parametrize(("error", "text"), [(TOO_LONG, LONG), (LIMITED, UPSTREAM)])
def test_an_error_in_the_middle_of_a_stream_keeps_its_code(
    gateway, upstream, error, text
):
    upstream.script = sends(STREAM[0], 0.02, event(error))
    last = gateway.stream(path=V1, headers=REQUEST_ID)[-1]
    assert last == {"error": {**error["error"], "message": text}}


def test_the_last_of_several_targets_says_what_is_passed_on(gateway, upstream):
    gateway.declare(targets=(Target(upstream.url, "a"), Target(upstream.url, "b")))

    async def script(request: Any) -> None:
        upstream.script = answers(LIMITED, 429, Retry_After="9")
        await answers({}, 503)(request)

    upstream.script = script
    response = post(gateway)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "9")

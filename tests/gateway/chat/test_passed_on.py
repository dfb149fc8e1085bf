"""What OpenAI's clients read in an error of the upstream arrives on /v1, and on /v2 the tables hold."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.core.test_errors import INTERNAL, REQUEST_ID, UPSTREAM
from tests.gateway.chat.mock_upstream import STREAM, answers, event, sends

V1 = {"path": "/v1/chat/completions", "headers": REQUEST_ID}
LIMITED = {
    "error": {
        "message": "Rate limit reached in organization org-secret",
        "type": "tokens",
        "param": None,
        "code": "rate_limit_exceeded",
    }
}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
DATE = "Wed, 21 Oct 2065 07:28:00 GMT"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("value", ["7", DATE])
def test_a_limit_of_the_upstream_is_passed_on(gateway, upstream, stream, value):
    upstream.script = answers(LIMITED, 429, Retry_After=value)
    response = gateway.post(stream=stream, **V1)
    assert (response.status_code, response.headers["Retry-After"]) == (429, value)
    assert response.json() == {
        "error": {
            "message": INTERNAL if stream else UPSTREAM,
            "type": "tokens",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
    assert gateway.kept.ended[0].status == 429


@pytest.mark.parametrize("stream", [False, True])
def test_on_v2_a_limit_of_the_upstream_is_what_the_table_says(
    gateway, upstream, stream
):
    upstream.script = answers(LIMITED, 429, Retry_After="7")
    response = gateway.post(stream=stream, headers=REQUEST_ID)
    assert response.status_code == 500
    assert response.json() == {"detail": INTERNAL if stream else UPSTREAM}
    assert "Retry-After" not in response.headers


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-1", "1.5", "7; x", "9" * 9, "\u0667", "Wed, 99 Oct 2065 07:28:00 GMT"],
)  # fmt: skip
def test_a_wrong_retry_after_is_not_passed_on(gateway, upstream, value):
    upstream.script = answers({}, 429, Retry_After=value)
    response = gateway.post(**V1)
    assert response.status_code == 429
    assert "Retry-After" not in response.headers
    assert response.json()["error"] == {
        "message": UPSTREAM,
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limit_exceeded",
    }


@pytest.mark.parametrize("stream", [False, True])
def test_the_code_of_a_refusal_is_passed_on(gateway, upstream, stream):
    upstream.script = answers(TOO_LONG, 400)
    response = gateway.post(stream=stream, **V1)
    assert (response.status_code, response.json()) == (400, TOO_LONG)


def test_on_v2_a_refusal_is_its_message_alone(gateway, upstream):
    upstream.script = answers(TOO_LONG, 400)
    message = TOO_LONG["error"]["message"]
    assert gateway.post(headers=REQUEST_ID).json() == {"detail": message}


def test_the_code_of_any_other_failure_is_passed_on(gateway, upstream):
    error = {"type": "overloaded_error", "code": "overloaded", "message": "secret"}
    upstream.script = answers({"error": error}, 503, Retry_After="3")
    response = gateway.post(**V1)
    assert response.status_code == 500
    assert "Retry-After" not in response.headers
    assert response.json()["error"] == {
        "message": UPSTREAM,
        "type": "overloaded_error",
        "param": None,
        "code": "overloaded",
    }


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/chat/completions"])
def test_errors_in_the_flat_shape_of_vllm_are_understood(gateway, upstream, path):
    if path == "/v1/embeddings":
        gateway.declare(inference_type="embedding")
    flat = {"object": "error", "message": "no", "type": "BadRequestError", "code": 400}
    upstream.script = answers({**flat, "param": "input"}, 400)
    assert gateway.post(path=path).json()["error"] == {
        "message": "no",
        "type": "BadRequestError",
        "param": "input",
        "code": None,
    }


@pytest.mark.parametrize(
    "value", ["", "x" * 201, "a\r\nb", "\x00", 5, True, [], {}, None]
)
@pytest.mark.parametrize("name", ["type", "param", "code"])
def test_what_is_no_name_is_not_passed_on(gateway, upstream, name, value):
    upstream.script = answers({"error": {"message": "no", name: value}}, 400)
    assert gateway.post(**V1).json()["error"] == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }


def test_a_limit_in_place_of_the_first_chunk_is_passed_on(gateway, upstream):
    upstream.script = sends(event({"error": {"code": 429, "type": "limited"}}))
    response = gateway.post(stream=True, **V1)
    assert (response.status_code, response.json()["error"]["type"]) == (429, "limited")


def test_a_refusal_in_place_of_the_first_chunk_keeps_its_code(gateway, upstream):
    upstream.script = sends(event(TOO_LONG))
    response = gateway.post(stream=True, **V1)
    assert (response.status_code, response.json()) == (400, TOO_LONG)


@pytest.mark.parametrize("error", [TOO_LONG, LIMITED])
def test_an_error_in_the_middle_of_a_stream_keeps_its_code(gateway, upstream, error):
    upstream.script = sends(STREAM[0], 0.02, event(error))
    last = json.loads(gateway.post(stream=True, **V1).text.split("\n\n")[-2][6:])
    assert last["error"]["code"] == error["error"]["code"]
    is_refusal = error is TOO_LONG
    assert (last["error"]["message"] == error["error"]["message"]) == is_refusal
    assert "org-secret" not in json.dumps(last)


def test_the_last_of_several_targets_says_what_is_passed_on(gateway, upstream):
    targets = (Target(upstream.url, "a"), Target(upstream.url, "b"))
    gateway.declare(targets=targets)

    async def script(request: Any) -> None:
        upstream.script = answers(LIMITED, 429, Retry_After="9")
        await answers({}, 503)(request)

    upstream.script = script
    response = gateway.post(**V1)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "9")


def test_openais_client_raises_its_own_errors(gateway, upstream, key):
    client = openai.OpenAI(base_url=gateway.url + "/v1", api_key=key, max_retries=0)

    def ask() -> None:
        client.chat.completions.create(
            model="small", messages=[{"role": "user", "content": "x"}]
        )

    upstream.script = answers(LIMITED, 429, Retry_After="7")
    with pytest.raises(openai.RateLimitError) as limited:
        ask()
    assert limited.value.code == "rate_limit_exceeded"
    assert limited.value.response.headers["retry-after"] == "7"
    upstream.script = answers(TOO_LONG, 400)
    with pytest.raises(openai.BadRequestError) as refused:
        ask()
    assert refused.value.code == "context_length_exceeded"
    assert refused.value.param == "messages"

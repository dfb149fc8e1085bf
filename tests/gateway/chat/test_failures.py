"""The reasons of upstreams' failures, and the pauses that they ask for: pure functions."""

from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chat.apis.messages.format import MESSAGES
from gateway.chat.apis.openai.format import CONTRACT, OPENAI
from gateway.chat.errors import (
    SYNCHRONOUS,
    InvalidValueError,
    UpstreamError,
    UpstreamServiceError,
)
from gateway.chat.failures import (
    MAX_CHARACTERS,
    REFUSED,
    failure_in,
    is_failure,
    is_too_long,
)
from gateway.chat.upstreams.http import pause_of


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "no"),
        ([{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}], "no"),
        ({"object": "error", "message": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}, "body.messages: Field required"),
        ({"error": "no"}, "no"),
        ({"reason": "odd"}, '{"reason":"odd"}'),
        ("a page of a proxy", "a page of a proxy"),
        ("x" * 5000, "x" * MAX_CHARACTERS),
        ({}, REFUSED),
    ],
)  # fmt: skip
def test_the_reason_of_a_refusal(body, reason):
    failure = failure_in(body, status=400)
    assert isinstance(failure, InvalidValueError)
    assert str(failure) == reason


@pytest.mark.parametrize(
    ("body", "is_error"),
    [
        ({"error": {"message": "x"}}, True),
        ([{"error": {}}], False),
        ([{"error": {"code": 500}}], True),
        ({"object": "error", "message": "x"}, True),
        ({"error": None, "choices": []}, False),
        ({"choices": [{"error": {"code": 502}}]}, True),
        ({"message": "x", "choices": [{}]}, False),
    ],
)
def test_an_error_in_place_of_an_answer(body, is_error):
    assert is_failure(body) is is_error


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded"},
        {"type": "exceed_context_size_error"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "This model's maximum context length is 8192 tokens."},
        {"message": "The input token count exceeds the maximum number of tokens"},
        {"message": "the request exceeds the available context size"},
        {"message": "Prompt is too large for model with 32768 maximum context length"},
    ],
)
def test_requests_that_are_too_long_are_known_in_the_words_of_each_server(error):
    assert is_too_long(failure_in({"error": error}, status=400))
    assert not is_too_long(failure_in({"error": error}, status=500))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(JSON, st.integers(0, 999))
def test_errors_of_any_shape_are_told_in_every_format(value: Any, status: int):
    for error in (value, {"error": value}, {"error": {"code": value, "type": value}}):
        failure = failure_in(error, status=status)
        for api_format in (CONTRACT, OPENAI, MESSAGES):
            told, _, _ = api_format.failure(SYNCHRONOUS, failure, "req-7")
            assert told in {400, 429, 500}
            api_format.error_event(failure, "req-7")


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (402, {"type": "billing_error", "message": "Pay."}, 500),
        (402, {"message": "Pay."}, 500),
        (429, {"code": "insufficient_quota", "message": "Pay."}, 429),
    ],
)
def test_an_account_without_credit_is_said_to_clients_of_anthropic(status, error, told):
    failure = failure_in({"error": error}, status=status)
    code, body, headers = MESSAGES.failure(SYNCHRONOUS, failure, "req-7")
    assert (code, headers["x-should-retry"]) == (told, "false")
    assert body["error"] == {"type": "billing_error", "message": "Pay."}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.2"}, 1.2),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(0, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_pauses_in_every_form_of_the_vendors(headers, seconds):
    assert pause_of(headers) == seconds


@pytest.mark.parametrize("api_format", [MESSAGES, OPENAI])
def test_a_pause_reaches_clients_in_whole_seconds(api_format):
    failure = UpstreamServiceError("HTTP 429")
    failure.upstream = UpstreamError(429, retry_after=1.2)
    status, _, headers = api_format.failure(SYNCHRONOUS, failure, "req-7")
    assert (status, headers["Retry-After"]) == (429, "2")

"""The specification's three error tables, row by row, by what a client reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.chat.core import errors
from gateway.chat.core.errors import (
    BEFORE_FIRST_CHUNK,
    SYNCHRONOUS,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
    look_up,
)
from gateway.configuration.shapes import Allow
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    answers,
    event,
    sends,
)

NOT_FOUND = "The specified endpoint could not be found."
INTERNAL = "Internal error occurred. Our team has been notified."
UPSTREAM = "Upstream service error for request_id req-7"
REQUEST_ID = {"X-Request-Id": "req-7"}
NOBODY = Allow(everyone=False)


def refusal(message: str, status: int = 400):
    return answers({"error": {"message": message, "type": "x"}}, status)


def status_and_detail(answer):
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"] == "req-7"
    assert set(answer.json()) == {"detail"}
    return answer.status_code, answer.json()["detail"]


# ── Synchronous ─────────────────────────────────────────────────────────────────────

DEEP = b"[" * 400 + b"]" * 400
UPSTREAM_FAILURES = [
    ("401", answers({"error": {"message": "bad key sk-upstream"}}, 401)),
    ("403", answers({}, 403)),
    ("404", answers({}, 404)),
    ("408", answers({}, 408)),
    ("429", answers({}, 429, Retry_After="7")),
    ("500", answers({}, 500)),
    ("503", answers(b"<html>", 503)),
    ("a redirect", answers({}, 307, Location="http://127.0.0.1:1/")),
    ("201", answers(COMPLETION, 201)),
    ("nonsense", answers(b"nonsense")),
    ("no object", answers([1])),
    ("no choices", answers({"id": "x"})),
    ("an error with 200", answers({"error": {"message": "no"}})),
    ("deep nesting", answers(b'{"choices":' + b"[" * 2000 + b"]" * 2000 + b"}")),
    ("too deep to be written", answers(b'{"model":"x","choices":[%s]}' % DEEP)),
]


@pytest.mark.spec("gateway", "synchronous: Upstream service error, 500")
@pytest.mark.parametrize(("_case", "script"), UPSTREAM_FAILURES)
def test_sync_upstream_failure_names_the_request_and_nothing_else(
    gateway, upstream, _case, script
):
    upstream.script = script
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (500, UPSTREAM)


@pytest.mark.parametrize("stream", [False, True])
def test_a_redirect_is_not_followed(gateway, upstream, stream):
    upstream.script = answers({}, 307, Location=upstream.url + "/elsewhere")
    assert gateway.post(stream=stream).status_code == 500
    assert [request.path for request in upstream.requests] == ["/v1/chat/completions"]


@pytest.mark.spec("gateway", "synchronous: Endpoint not found or not authorized, 404")
@pytest.mark.spec("gateway", "before the first chunk: not found or not authorized, 404")
@pytest.mark.parametrize("stream", [False, True])
def test_absent_and_forbidden_are_answered_byte_for_byte_the_same(
    gateway, upstream, stream
):
    gateway.declare(
        name="secret", allow=NOBODY, supports=frozenset(), inference_type="x"
    )

    absent = gateway.post(model="absent", stream=stream, headers=REQUEST_ID)
    forbidden = gateway.post(model="secret", stream=stream, headers=REQUEST_ID)

    assert status_and_detail(absent) == status_and_detail(forbidden) == (404, NOT_FOUND)
    assert absent.content == forbidden.content
    for name in ("Date", "date"):
        absent.headers.pop(name, None), forbidden.headers.pop(name, None)
    assert absent.headers == forbidden.headers
    assert upstream.requests == []
    assert [model for _, model in gateway.kept.denied] == ["absent", "secret"]
    assert gateway.kept.ended == []


@pytest.mark.parametrize("model", ["absent", "secret"])
@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("/v2/chat/completions", "chat.completions"),
        ("/v1/chat/completions", "chat.completions"),
        ("/v1/embeddings", "embeddings"),
    ],
)
def test_a_denial_names_the_operation_that_was_asked_for(gateway, path, action, model):
    gateway.declare(name="secret", allow=NOBODY)
    assert gateway.post(path=path, model=model, input="x").status_code == 404
    assert gateway.kept.denied == [(action, model)]


@pytest.mark.spec("gateway", "synchronous: Invalid value or invalid request, 400")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"stream": false}', "model: this field is required."),
        (b'{"model": 5}', "model: must be a non-empty string."),
        (b'{"model": ""}', "model: must be a non-empty string."),
        (b'{"model": null}', "model: must be a non-empty string."),
        (b'{"model": "small", "stream": "yes"}', "stream: must be a boolean."),
        (b'{"model": "small", "stream": 1}', "stream: must be a boolean."),
        (
            b'{"model": [], "stream": 0}',
            ["model: must be a non-empty string.", "stream: must be a boolean."],
        ),
        (b"[]", "The body must be a JSON object."),
        (b'{"stream": true}', "model: this field is required."),
    ],
)
def test_an_invalid_request_says_what_is_wrong(gateway, upstream, body, detail):
    assert status_and_detail(gateway.post(body, headers=REQUEST_ID)) == (400, detail)
    assert upstream.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"model": "small", "a": NaN}',
        b'{"model": "\\ud800"}',
        b'{"model": "small", "a": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"model": "small", "a": 1e400, "b": Infinity}',
        b'{"model": "small", "a": 1e400, "b": "\\ud800"}',
        b'{"model": "small", "a": 1e400, "b": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"model": "small", "a": 1e400, "b": "\xff"}',
    ],
)
def test_a_body_that_is_not_json_is_a_bad_request(gateway, upstream, body):
    status, detail = status_and_detail(gateway.post(body, headers=REQUEST_ID))
    assert status == 400
    assert detail.startswith("The body is not valid JSON: ")
    assert upstream.requests == []


@pytest.mark.parametrize("stream", [b"true", b"false"])
def test_a_body_nested_too_deeply_to_be_passed_on_is_a_bad_request(gateway, stream):
    body = b'{"model":"small","stream":%s,"a":%s1%s}' % (stream, b"[" * 400, b"]" * 400)
    assert status_and_detail(gateway.post(body, headers=REQUEST_ID)) == (
        400,
        "The body is nested too deeply.",
    )


@pytest.mark.spec("gateway", "synchronous: Invalid value or invalid request, 400")
@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstreams_refusal_keeps_its_message(gateway, upstream, status, stream):
    upstream.script = refusal("messages: too few", status)
    response = gateway.post(stream=stream, headers=REQUEST_ID)
    assert status_and_detail(response) == (400, "messages: too few")


def test_a_refusal_of_any_length_is_told_in_short(gateway, upstream):
    upstream.script = answers(b"x" * 1_000_000, 400)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (400, "x" * 1000)


@pytest.mark.spec("gateway", "synchronous: arguments as is, a list, or the text")
@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (InvalidValueError("one"), "one"),
        (InvalidValueError({"a": 1}), {"a": 1}),
        (InvalidRequestError("one", "two"), ["one", "two"]),
        (InvalidRequestError(), ""),
    ],
)
def test_the_detail_is_made_of_the_exceptions_arguments(error, detail):
    assert look_up(SYNCHRONOUS, error, "req-7") == (400, detail)


@pytest.mark.spec("gateway", "synchronous: Endpoint does not support request, 400")
def test_sync_unsupported_request(gateway, upstream):
    gateway.declare(supports=frozenset({"streaming"}))
    response = gateway.post(headers=REQUEST_ID, tools=[{"type": "function"}])
    assert status_and_detail(response) == (
        400,
        "Endpoint does not support request: tools",
    )
    assert upstream.requests == []


@pytest.mark.spec("gateway", "synchronous: Unsupported inference type, 400")
def test_sync_unsupported_inference_type(gateway, upstream):
    gateway.declare(inference_type="embedding", supports=frozenset())
    response = gateway.post(headers=REQUEST_ID)
    assert status_and_detail(response) == (400, "Unsupported inference type: embedding")
    assert upstream.requests == []


# ── Streaming, before the first chunk ───────────────────────────────────────────────


@pytest.mark.spec("gateway", "before the first chunk: unsupported or invalid, 400")
def test_before_the_first_chunk_the_message_stands_alone(gateway):
    gateway.declare(name="plain", supports=frozenset({"tools"}))
    gateway.declare(name="vectors", inference_type="embedding")

    plain = gateway.post(model="plain", stream=True, headers=REQUEST_ID)
    vectors = gateway.post(model="vectors", stream=True, headers=REQUEST_ID)

    assert status_and_detail(plain) == (400, "streaming")
    assert status_and_detail(vectors) == (400, "embedding")


@pytest.mark.spec("gateway", "The first chunk is obtained before the stream opens")
@pytest.mark.spec("gateway", "before the first chunk: any other failure, 500")
@pytest.mark.parametrize(
    ("_case", "script"),
    [
        *UPSTREAM_FAILURES[:10],
        ("cut off", sends(None)),
        ("ended", sends()),
        ("ended as usual, without a chunk", sends(DONE)),
        ("an error first", sends(event({"error": {"message": "overloaded"}}))),
        ("malformed JSON", sends(event(b'{"id":'))),
        ("no object", sends(event(b"5"))),
        ("half a chunk", sends(b'data: {"id": "1", "choi')),
        ("a whole answer", answers(COMPLETION)),
    ],
)
def test_before_the_first_chunk_every_other_failure_is_internal(
    gateway, upstream, _case, script
):
    upstream.script = script
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)
    assert gateway.kept.ended[0].status == 500


@pytest.mark.spec("gateway", "before the first chunk: invalid value, 400")
def test_a_refusal_in_place_of_the_first_chunk_is_an_ordinary_error(gateway, upstream):
    error = {"error": {"message": "too long", "code": 400}}
    upstream.script = sends(event(error))
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (400, "too long")


def test_an_invalid_request_before_the_first_chunk_is_any_other_failure():
    row = look_up(BEFORE_FIRST_CHUNK, InvalidRequestError("x"), "req-7")
    assert row == (500, INTERNAL)


# ── Streaming, after it has begun ───────────────────────────────────────────────────

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d P[SD]T")


def last_of(gateway, upstream, *parts: Any):
    upstream.script = sends(*parts)
    *chunks, last = gateway.stream(headers=REQUEST_ID)
    assert [chunk["choices"][0]["delta"]["content"] for chunk in chunks] == ["Hel"]
    assert set(last) == {"request_id", "error"}
    assert set(last["error"]) == {"status_code", "content"}
    assert set(last["error"]["content"]) == {"error", "timestamp"}
    assert TIMESTAMP.fullmatch(last["error"]["content"]["timestamp"])
    assert last["request_id"] == "req-7"
    return last["error"]["status_code"], last["error"]["content"]["error"]


@pytest.mark.spec("gateway", "Stream error chunk: request_id, error.status_code, …")
@pytest.mark.spec("gateway", "after it has begun: Invalid request, 400")
@pytest.mark.parametrize(
    "error",
    [
        {"message": "context is full", "code": 400},
        {"message": "context is full", "code": "422"},
        {"message": "context is full", "type": "invalid_request_error"},
    ],
)
def test_after_the_first_chunk_a_refusal_keeps_its_message(gateway, upstream, error):
    parts = STREAM[0], 0.02, event({"error": error})
    assert last_of(gateway, upstream, *parts) == (400, "context is full")


@pytest.mark.spec("gateway", "after it has begun: Upstream service error, 500")
@pytest.mark.parametrize(
    ("_case", "parts"),
    [
        ("an error object", (event({"error": {"message": "no", "code": 500}}),)),
        ("an error as text", (event({"error": "out of memory"}),)),
        ("an error event", (b'event: error\ndata: {"message": "no"}\n\n',)),
        ("an unhashable type", (event({"error": {"type": ["x"]}}),)),
        ("reset", (None,)),
        ("an early end", ()),
        ("half a chunk", (STREAM[1][:20],)),
        ("malformed JSON", (event(b"{'a': 1}"),)),
        ("an array", (event(b"[]"),)),
        ("deep nesting", (event(b'{"a":' * 900 + b"null" + b"}" * 900),)),
        ("bad UTF-8", (event(b'{"choices":[{"delta":{"content":"\xff"}}]}'),)),
    ],
)
def test_after_the_first_chunk_a_failure_of_the_upstream_ends_the_stream(
    gateway, upstream, _case, parts
):
    assert last_of(gateway, upstream, STREAM[0], 0.02, *parts) == (500, UPSTREAM)
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].error_status == 500


def test_a_fault_that_arrives_with_the_first_chunk_comes_after_it(gateway, upstream):
    both = STREAM[0] + event(b"nonsense")
    assert last_of(gateway, upstream, both) == (500, UPSTREAM)


@pytest.mark.spec("gateway", "after it has begun: any other failure, 500")
def test_after_the_first_chunk_any_other_failure_is_internal(
    gateway, upstream, monkeypatch
):
    from gateway.chat.streaming.transform import ChunkTransformer

    def fail(_):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(ChunkTransformer, "end", fail)
    parts = STREAM[0], 0.02, DONE
    assert last_of(gateway, upstream, *parts) == (500, INTERNAL)


@pytest.mark.spec(
    "gateway", "Format YYYY-MM-DD HH:MM:SS <zone abbreviation>, US Pacific"
)
@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-01 19:04:05 PST"),
        (datetime(2026, 7, 2, 3, 4, 5, tzinfo=UTC), "2026-07-01 20:04:05 PDT"),
        (datetime(2026, 11, 1, 8, 59, 59, tzinfo=UTC), "2026-11-01 01:59:59 PDT"),
        (datetime(2026, 11, 1, 9, 0, 0, tzinfo=UTC), "2026-11-01 01:00:00 PST"),
    ],
)
def test_the_error_chunk_tells_pacific_time(time, text):
    chunk_ = errors.error_chunk(UpstreamServiceError("x"), "req-7", time)
    assert chunk_["error"]["content"]["timestamp"] == text

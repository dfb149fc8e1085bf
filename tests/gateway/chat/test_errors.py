"""The specification's three error tables, row by row, by what a client reads."""

import gzip
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.chat.apis.openai.passing import PassedChunks
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    BEFORE_FIRST_CHUNK,
    SYNCHRONOUS,
    EndpointNotFoundError,
    InvalidRequestError,
    InvalidValueError,
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
    UpstreamServiceError,
    error_chunk,
    look_up,
)
from gateway.configuration.shapes import Allow
from tests.gateway.chat.harness import (
    INTERNAL,
    NOT_FOUND,
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
    V1,
    V2,
    status_and_detail,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    answers,
    event,
    head,
    raw,
    sends,
)

UNSUPPORTED = "Endpoint does not support request: "
OTHER_TYPE = "Unsupported inference type: "


@pytest.mark.parametrize(
    ("error", "synchronous", "before", "after"),
    [
        (UpstreamServiceError("secret"), (500, UPSTREAM), (500, INTERNAL), (500, UPSTREAM)),
        (EndpointNotFoundError(), (404, NOT_FOUND), (404, NOT_FOUND), (500, INTERNAL)),
        (InvalidValueError("value"), (400, "value"), (400, "value"), (500, INTERNAL)),
        (InvalidRequestError("request"), (400, "request"), (500, INTERNAL), (400, "request")),
        (UnsupportedRequestError("what"), (400, UNSUPPORTED + "what"), (400, "what"), (500, INTERNAL)),
        (UnsupportedInferenceTypeError("kind"), (400, OTHER_TYPE + "kind"), (400, "kind"), (500, INTERNAL)),
        (RuntimeError("secret"), (500, INTERNAL), (500, INTERNAL), (500, INTERNAL)),
    ],
)  # fmt: skip
def test_each_class_has_its_row_in_each_table(error, synchronous, before, after):
    assert look_up(SYNCHRONOUS, error, "req-7") == synchronous
    assert look_up(BEFORE_FIRST_CHUNK, error, "req-7") == before
    assert look_up(AFTER_FIRST_CHUNK, error, "req-7") == after


# ── Failures of the upstream, synchronous and before the first chunk ────────────────

DEEP = b"[" * 1010 + b"]" * 1010


def deep_message(**block: Any) -> Any:
    """A message of Anthropic's API with DEEP in place of a text."""
    block = {"type": "tool_use", "id": "x", "name": "f", "input": {}} | block
    text = json.dumps({"type": "message", "content": [block]}).encode()
    return answers(text.replace(b'"DEEP"', DEEP))


UPSTREAM_FAILURES = [
    ("401", answers({"error": {"message": "bad key sk-upstream"}}, 401)),
    *((str(status), answers({}, status)) for status in (403, 404, 408, 429, 500, 529)),
    ("503", answers(b"<html>", 503)),
    ("201", answers(COMPLETION, 201)),
    ("nonsense", answers(b"nonsense")),
    ("no object", answers([1])),
    ("no choices", answers({"id": "x"})),
    ("a message without content", answers({"type": "message"})),
    ("content without a message", answers({"content": []})),
    ("an error with 200", answers({"error": {"message": "no"}})),
    ("deep nesting", answers(b'{"choices":' + b"[" * 2000 + b"]" * 2000 + b"}")),
    ("nesting without an end", answers(b'{"choices":' + b"[" * 100_000)),
    ("arguments too deep to be written", deep_message(input="DEEP")),
    ("bad UTF-8", answers(b'{"choices": [], "id": "\xff"}')),
    ("a short body", raw(head(Content_Length="500") + b"{")),
    ("no body", raw(head(204))),
    ("gzip that is cut off", answers(gzip.compress(json.dumps(COMPLETION).encode())[:-20], Content_Encoding="gzip")),
]  # fmt: skip


@pytest.mark.spec("gateway", "synchronous: Upstream service error, 500")
@pytest.mark.parametrize(("_case", "script"), UPSTREAM_FAILURES)
def test_sync_upstream_failure_names_the_request_and_nothing_else(
    gateway, claude, upstream, _case, script
):
    upstream.script = script
    for post in (gateway.post, claude):
        assert status_and_detail(post(headers=REQUEST_ID)) == (500, UPSTREAM)


@pytest.mark.spec("gateway", "The first chunk is obtained before the stream opens")
@pytest.mark.spec("gateway", "before the first chunk: any other failure, 500")
@pytest.mark.parametrize(
    ("_case", "script"),
    [
        *UPSTREAM_FAILURES,
        ("cut off", sends(None)),
        ("ended", sends()),
        ("ended as usual, without a chunk", sends(DONE)),
        ("a comment alone", sends(b": ping\n\n", DONE)),
        ("the end of a message alone", sends(event({"type": "message_stop"}))),
        ("an error first", sends(event({"error": {"message": "overloaded"}}))),
        ("malformed JSON", sends(event(b'{"id":'))),
        ("half a chunk", sends(b'data: {"id": "1", "choi')),
        ("a whole answer", answers(COMPLETION)),
    ],
)
def test_before_the_first_chunk_every_other_failure_is_internal(
    gateway, claude, upstream, _case, script
):
    upstream.script = script
    for post in (gateway.post, claude):
        response = post(stream=True, headers=REQUEST_ID)
        assert status_and_detail(response) == (500, INTERNAL)
        assert gateway.kept.ended.pop().status == 500


@STREAM_OR_NOT
def test_a_redirect_is_not_followed(gateway, upstream, stream):
    upstream.script = answers({}, 307, Location=upstream.url + "/elsewhere")
    assert gateway.post(stream=stream).status_code == 500
    assert [request.path for request in upstream.requests] == ["/v1/chat/completions"]


# ── Requests that are refused ───────────────────────────────────────────────────────


@pytest.mark.spec("gateway", "synchronous: Endpoint not found or not authorized, 404")
@pytest.mark.spec("gateway", "before the first chunk: not found or not authorized, 404")
@STREAM_OR_NOT
@pytest.mark.parametrize(
    ("path", "action"),
    [
        *((V2, "chat.completions"), (V1, "chat.completions")),
        *(("/v1/embeddings", "embeddings"), ("/v1/responses", "responses")),
    ],
)
def test_absent_and_forbidden_are_answered_byte_for_byte_the_same(
    gateway, upstream, stream, path, action
):
    nobody = Allow(everyone=False)
    gateway.declare(
        name="secret", allow=nobody, supports=frozenset(), inference_type="x"
    )
    fields = {"path": path, "stream": stream, "headers": REQUEST_ID}

    absent, forbidden = (
        gateway.post(model=name, **fields) for name in ("absent", "secret")
    )

    assert absent.status_code == 404
    assert NOT_FOUND in absent.text
    if path == V2:
        assert status_and_detail(absent) == (404, NOT_FOUND)
    assert absent.content == forbidden.content
    for response in (absent, forbidden):
        response.headers.pop("Date", None)
    assert absent.headers == forbidden.headers
    assert upstream.requests == gateway.kept.ended == []
    reason = "not_found_or_forbidden"
    denied = [(action, model, reason) for model in ("absent", "secret")]
    assert gateway.kept.denied == denied


@pytest.mark.spec("gateway", "synchronous: Invalid value or invalid request, 400")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"model": ""}', "model: must be a non-empty string."),
        (b'{"model": null}', "model: must be a non-empty string."),
        (b'{"model": "small", "stream": 1}', "stream: must be a boolean."),
        (b'{"model": [], "stream": 0}', ["model: must be a non-empty string.", "stream: must be a boolean."]),
    ],
)  # fmt: skip
def test_an_invalid_request_says_what_is_wrong(gateway, upstream, body, detail):
    assert status_and_detail(gateway.post(body, headers=REQUEST_ID)) == (400, detail)
    assert upstream.requests == []


# Deeper than json reads in any version of Python.
NESTED = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"\xff"),
        *(b'{"model": "small", "a": %s}' % value for value in (b"NaN", NESTED)),
        *(
            b'{"model": "small", "a": 1e400, "b": %s}' % value
            for value in (b"Infinity", NESTED, b'"\xff"')
        ),
    ],
)
def test_a_body_that_is_not_json_is_a_bad_request(gateway, upstream, body):
    status, detail = status_and_detail(gateway.post(body, headers=REQUEST_ID))
    assert status == 400
    assert detail.startswith("The body is not valid JSON: ")
    assert upstream.requests == []


@pytest.mark.spec("gateway", "synchronous: Invalid value or invalid request, 400")
@pytest.mark.parametrize("status", [400, 413, 422])
@STREAM_OR_NOT
def test_an_upstreams_refusal_keeps_its_message(
    gateway, claude, upstream, status, stream
):
    error = {"error": {"message": "messages: too few", "type": "x"}}
    upstream.script = answers(error, status)
    for post in (gateway.post, claude):
        response = post(stream=stream, headers=REQUEST_ID)
        assert status_and_detail(response) == (400, "messages: too few")


@pytest.mark.spec("gateway", "synchronous: arguments as is, a list, or the text")
@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (InvalidValueError({"a": 1}), {"a": 1}),
        (InvalidRequestError("one", "two"), ["one", "two"]),
        (InvalidRequestError(), ""),
    ],
)
def test_the_detail_is_made_of_the_exceptions_arguments(error, detail):
    assert look_up(SYNCHRONOUS, error, "req-7") == (400, detail)


@pytest.mark.spec("gateway", "synchronous: Unsupported inference type, 400")
def test_sync_unsupported_inference_type(gateway, upstream):
    gateway.declare(inference_type="embedding", supports=frozenset())
    response = gateway.post(headers=REQUEST_ID)
    assert status_and_detail(response) == (400, OTHER_TYPE + "embedding")
    assert upstream.requests == []


@pytest.mark.spec("gateway", "before the first chunk: unsupported or invalid, 400")
@pytest.mark.parametrize(
    ("fields", "detail"),
    [({"supports": frozenset({"tools"})}, "streaming"), ({"inference_type": "embedding"}, "embedding")],
)  # fmt: skip
def test_before_the_first_chunk_the_message_stands_alone(gateway, fields, detail):
    gateway.declare(**fields)
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (400, detail)


@pytest.mark.spec("gateway", "before the first chunk: invalid value, 400")
def test_a_refusal_in_place_of_the_first_chunk_is_an_ordinary_error(
    gateway, claude, upstream
):
    upstream.script = sends(event({"error": {"message": "too long", "code": 400}}))
    for post in (gateway.post, claude):
        response = post(stream=True, headers=REQUEST_ID)
        assert status_and_detail(response) == (400, "too long")


# ── Streams that have begun ─────────────────────────────────────────────────────────

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d P[SD]T")


def last_of(gateway, upstream, *parts: Any):
    """Return the status and the text of the last event, behind one chunk."""
    upstream.script = sends(*parts)
    *chunks, last = gateway.stream(headers=REQUEST_ID)
    assert text_of(chunks) == "Hel"
    assert set(last) == {"request_id", "error"}
    assert set(last["error"]) == {"status_code", "content"}
    assert set(last["error"]["content"]) == {"error", "timestamp"}
    assert TIMESTAMP.fullmatch(last["error"]["content"]["timestamp"])
    assert last["request_id"] == "req-7"
    return last["error"]["status_code"], last["error"]["content"]["error"]


@pytest.mark.spec("gateway", "Stream error chunk: request_id, error.status_code, …")
@pytest.mark.spec("gateway", "after it has begun: Invalid request, 400")
@pytest.mark.parametrize(
    "error", [{"code": 400}, {"code": "422"}, {"type": "invalid_request_error"}]
)
def test_after_the_first_chunk_a_refusal_keeps_its_message(gateway, upstream, error):
    parts = STREAM[0], 0.02, event({"error": {"message": "full", **error}})
    assert last_of(gateway, upstream, *parts) == (400, "full")


@pytest.mark.spec("gateway", "the failure is delivered as a final stream event")
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
        ("an index too deep", (event(b'{"choices":[{"delta":null,"index":%s}]}' % DEEP),)),
    ],
)  # fmt: skip
def test_after_the_first_chunk_a_failure_of_the_upstream_ends_the_stream(
    gateway, upstream, _case, parts
):
    assert last_of(gateway, upstream, STREAM[0], 0.02, *parts) == (500, UPSTREAM)
    assert gateway.recorded().error_status == 500
    if parts != (None,):  # in one read with the chunk
        both = b"".join((STREAM[0], *parts))
        assert last_of(gateway, upstream, both) == (500, UPSTREAM)


@pytest.mark.spec("gateway", "after it has begun: any other failure, 500")
def test_after_the_first_chunk_any_other_failure_is_internal(
    gateway, upstream, monkeypatch
):
    def fail(_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(PassedChunks, "end", fail)
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
    chunk = error_chunk(UpstreamServiceError("x"), "req-7", time)
    assert chunk["error"]["content"]["timestamp"] == text

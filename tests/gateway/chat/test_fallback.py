"""Other endpoints in place of one that fails, and the repetition of its calls."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat import fallback
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.fallback import _pause_s, header_value
from gateway.configuration.shapes import Allow, Target
from tests.gateway.chat.harness import (
    INTERNAL,
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
    V1,
    raw_request,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    STREAM,
    Received,
    Script,
    answers,
    event,
    greeting,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE, TOOL

TOO_LONG = {"error": {"message": "long", "code": "context_length_exceeded"}}
ANSWERED_BY = "X-Signpost-Model"


def by_model(**scripts: Script) -> Script:
    """Answer by the name of the model that is called."""

    async def script(request: Received) -> None:
        await scripts[request.json["model"]](request)

    return script


@pytest.fixture
def declare(gateway, upstream):
    def add(name: str, **fields: Any) -> Any:
        return gateway.declare(name, targets=(Target(upstream.url, name),), **fields)

    return add


def called(upstream) -> list[str]:
    return [request.json["model"] for request in upstream.requests]


@STREAM_OR_NOT
def test_another_endpoint_answers_for_one_that_fails(
    gateway, upstream, declare, stream
):
    declare("small", fallbacks=("other",))
    declare("other")
    upstream.script = by_model(small=answers({}, 503), other=greeting(stream=stream))
    response = gateway.post(stream=stream)
    assert response.status_code == 200
    assert response.headers[ANSWERED_BY] == "other"
    assert called(upstream) == ["small", "other"]
    # The client gets the name that it asked for, and the answerer counts the usage.
    assert b'"model":"other"' not in response.content.replace(b" ", b"")
    context = gateway.recorded()
    assert (context.endpoint.name, context.target.model) == ("other", "other")
    assert (context.status, context.usage.prompt_tokens) == (200, 9)


@STREAM_OR_NOT
def test_the_requested_endpoint_says_that_it_answered(
    gateway, upstream, declare, stream
):
    declare("small", fallbacks=("other",))
    upstream.script = greeting(stream=stream)
    assert gateway.post(stream=stream).headers[ANSWERED_BY] == "small"
    declare("small")
    assert ANSWERED_BY not in gateway.post(stream=stream).headers


def test_an_endpoint_of_another_kind_answers(gateway, upstream, declare):
    declare("small", fallbacks=("claude",))
    declare("claude", upstream="anthropic")
    upstream.script = by_model(small=answers({}, 500), claude=answers(MESSAGE))
    body = gateway.post().json()
    assert body["choices"][0]["message"]["content"] == "Hello!"
    assert body["model"] == "small"
    assert upstream.requests[1].path == "/v1/messages"


def test_fallbacks_are_called_in_their_order_and_not_their_own(
    gateway, upstream, declare
):
    declare("small", fallbacks=("b", "a"))
    declare("a")
    declare("b", fallbacks=("c",))
    declare("c")
    broken = answers({}, 503)
    upstream.script = by_model(small=broken, b=broken, a=broken)
    response = gateway.post(headers=REQUEST_ID)
    assert (response.status_code, response.json()) == (500, {"detail": UPSTREAM})
    assert called(upstream) == ["small", "b", "a"]
    assert gateway.recorded().endpoint.name == "small"
    assert ANSWERED_BY not in response.headers


def test_only_what_the_caller_may_use_and_what_supports_the_request_is_called(
    gateway, upstream, declare
):
    names = ("absent", "hidden", "plain", "vectors", "claude", "good")
    declare("small", fallbacks=names)
    declare("hidden", allow=Allow(everyone=False, tenants=frozenset({"globex"})))
    declare("plain", supports=frozenset({"streaming"}))
    declare("vectors", inference_type="embedding")
    declare("claude", upstream="anthropic")  # has no `seed`
    declare("good", supports=frozenset({"tools"}))
    upstream.script = by_model(small=answers({}, 503), good=answers(COMPLETION))
    response = gateway.post(tools=[TOOL], seed=7)
    assert (response.status_code, response.headers[ANSWERED_BY]) == (200, "good")
    assert called(upstream) == ["small", "good"]
    del gateway.known["good"]
    assert gateway.post(tools=[TOOL], seed=7).status_code == 500


@STREAM_OR_NOT
def test_a_refusal_is_final_but_for_its_length(gateway, upstream, declare, stream):
    declare("small", fallbacks=("other",), context_fallbacks=("long",))
    declare("other")
    declare("long")
    refused = answers({"error": {"message": "no"}}, 400)
    upstream.script = by_model(small=refused)
    response = gateway.post(stream=stream)
    assert (response.status_code, response.json()) == (400, {"detail": "no"})
    upstream.script = by_model(
        small=answers(TOO_LONG, 400), long=greeting(stream=stream)
    )
    assert gateway.post(stream=stream).headers[ANSWERED_BY] == "long"
    assert called(upstream) == ["small", "small", "long"]


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
def test_requests_that_are_too_long_are_known_in_the_words_of_each_server(
    gateway, upstream, declare, error
):
    declare("small", context_fallbacks=("long",))
    declare("long")
    upstream.script = by_model(
        small=answers({"error": error}, 400), long=answers(COMPLETION)
    )
    assert gateway.post().headers[ANSWERED_BY] == "long"


def test_a_limit_of_the_last_fallback_is_what_the_client_gets(
    gateway, upstream, declare
):
    declare("small", fallbacks=("other",))
    declare("other")
    upstream.script = by_model(
        small=answers({}, 503), other=answers({}, 429, Retry_After="9")
    )
    response = gateway.post(path=V1)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "9")


def test_after_the_first_chunk_nobody_else_is_called(gateway, upstream, declare):
    targets = Target(upstream.url, "small"), Target(upstream.url, "small")
    gateway.declare(targets=targets, fallbacks=("other",), retries=3)
    declare("other")
    upstream.script = by_model(small=sends(STREAM[0], None))
    events = gateway.stream()
    assert text_of(events) == "Hel"
    assert events[-1]["error"]["status_code"] == 500
    assert called(upstream) == ["small"]


def test_each_endpoint_has_its_own_total_time(gateway, upstream, declare):
    declare("small", fallbacks=("other",), timeouts={"total_s": 0.01})
    declare("other")
    upstream.script = by_model(
        small=sends(3600.0), other=sends(event(COMPLETION), 0.02, *STREAM)
    )
    assert gateway.stream()[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_client_that_leaves_ends_the_call_of_a_fallback(gateway, upstream, declare):
    declare("small", fallbacks=("other",))
    declare("other")
    upstream.script = by_model(small=answers({}, 503), other=sends(STREAM[0], 3600.0))
    with gateway.opened() as response:
        assert response.headers[ANSWERED_BY] == "other"
    context = gateway.recorded()
    assert (context.status, context.endpoint.name) == (499, "other")


# ── Retries ─────────────────────────────────────────────────────────────────────────


def failing(times: int, failure: Script, success: Script) -> Script:
    left = [failure] * times

    async def script(request: Received) -> None:
        await (left.pop() if left else success)(request)

    return script


@pytest.fixture
def no_pause(monkeypatch) -> None:
    monkeypatch.setattr(fallback, "FIRST_PAUSE_S", 0.0)


@STREAM_OR_NOT
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(gateway, upstream, no_pause, stream, status):
    gateway.declare(retries=2)
    upstream.script = failing(2, answers({}, status), greeting(stream=stream))
    assert gateway.post(stream=stream).status_code == 200
    assert len(upstream.requests) == 3


@STREAM_OR_NOT
def test_retries_end_and_without_them_there_is_none(
    gateway, upstream, no_pause, stream
):
    upstream.script = answers({}, 503)
    for retries in (0, 2):
        gateway.declare(retries=retries)
        response = gateway.post(stream=stream, headers=REQUEST_ID)
        detail = INTERNAL if stream else UPSTREAM
        assert (response.status_code, response.json()) == (500, {"detail": detail})
    assert len(upstream.requests) == 1 + 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_stays_is_not_tried_again(gateway, upstream, no_pause, status):
    gateway.declare(retries=5)
    upstream.script = answers({}, status)
    assert gateway.post().status_code in {400, 500}
    assert len(upstream.requests) == 1


def test_a_pause_that_is_too_long_is_not_waited_for(gateway, upstream, declare):
    declare("small", retries=5, fallbacks=("other",))
    declare("other")
    upstream.script = by_model(
        small=answers({}, 429, Retry_After="21"), other=answers(COMPLETION)
    )
    assert gateway.post().headers[ANSWERED_BY] == "other"
    declare("small", retries=5, timeouts={"total_s": 20.0})
    upstream.script = answers({}, 429, Retry_After="20")
    assert gateway.post().status_code == 500
    assert called(upstream) == ["small", "other", "small"]


def test_pauses_grow_and_are_at_least_what_the_server_asks_for():
    failure = UpstreamServiceError("x")
    for retry, most in enumerate([0.5, 1, 2, 4, 8, 16, 20, 20]):
        pause_s = _pause_s(failure, retry)
        assert pause_s is not None
        assert most / 2 <= pause_s <= most
    assert _pause_s(UpstreamServiceError("x", retry_after=7), 0) == 7
    assert _pause_s(UpstreamServiceError("x", retry_after=21), 0) is None


def test_a_client_that_leaves_ends_the_pause(gateway, upstream):
    gateway.declare(retries=1)
    upstream.script = answers({}, 429, Retry_After="19")
    with gateway.connected(raw_request()):
        assert gateway.settled(lambda: upstream.requests)
        assert gateway.settled(lambda: upstream.open == 1)
    assert gateway.recorded().status == 499


@pytest.mark.parametrize(
    ("name", "value"),
    [("gpt-5", "gpt-5"), ("größe", "gr%C3%B6%C3%9Fe"), ("a\nb", "a%0Ab")],
)
def test_any_name_can_stand_in_the_header(name, value):
    assert header_value(name) == value

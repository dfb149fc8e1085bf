"""Targets in their order, ejection and recovery; fallbacks; how much one caller may ask for at once."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gateway.chat.targets import Router, header_value
from gateway.configuration.shapes import Allow, ModelEntry, Target
from tests.gateway.chat.harness import (
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
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

HEAVY, LIGHT = Target("http://a/v1", "m", weight=9), Target("http://b/v1", "m")
PAIR = ModelEntry("pair", "openai", (HEAVY, LIGHT))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_targets_are_drawn_by_their_weight():
    router = Router()
    firsts = Counter(router.order(PAIR)[0] for _ in range(2000))
    # 1,800 are expected, with a deviation of 13.
    assert 1700 < firsts[HEAVY] < 1900
    assert all(len(router.order(PAIR)) == 2 for _ in range(3))


def ejected_s(router: Router, clock: Clock) -> int:
    """Let the time pass until HEAVY is not ejected; return the seconds."""
    seconds = 0
    while router.is_ejected(PAIR, HEAVY):
        clock.now += 1
        seconds += 1
    return seconds


def test_each_further_failure_doubles_the_pause_up_to_a_minute():
    clock = Clock()
    router = Router(clock=clock)
    pauses = []
    for _ in range(8):
        router.failed(PAIR, HEAVY)
        if router.is_ejected(PAIR, HEAVY):
            assert all(router.order(PAIR) == [LIGHT, HEAVY] for _ in range(20))
        pauses.append(ejected_s(router, clock))
    assert pauses == [0, 0, 5, 10, 20, 40, 60, 60]
    assert any(router.order(PAIR)[0] == HEAVY for _ in range(50))
    router.succeeded(PAIR, HEAVY)
    router.failed(PAIR, HEAVY)
    assert ejected_s(router, clock) == 0


def test_a_retry_after_of_the_upstream_is_honoured(gateway, upstream):
    upstream.script = answers({}, 429, Retry_After="30")
    entry = gateway.known["small"]
    assert gateway.post().status_code == 500
    assert gateway.router.is_ejected(entry, entry.targets[0])
    upstream.script = answers(COMPLETION)
    # It is the only one: refusing for it would win nothing.
    assert gateway.post().status_code == 200
    assert not gateway.router.is_ejected(entry, entry.targets[0])


@STREAM_OR_NOT
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"api_key": "sk\n1"}, id="a key that no header can hold"),
        pytest.param({"base_url": "http://[::1"}, id="no address"),
        pytest.param({"base_url": "http://a..b:1"}, id="no name of a host"),
        pytest.param({"base_url": "ftp://x"}, id="another protocol"),
    ],
)
def test_any_exception_of_one_target_is_the_failure_of_that_target(
    gateway, upstream, stream, broken
):
    good = Target(upstream.url, "good")
    bad = replace(Target(upstream.url, "bad"), **broken)
    upstream.script = greeting(stream=stream)
    for kind in ("openai", "anthropic"):
        entry = gateway.declare(targets=(bad,), upstream=kind)
        assert gateway.post(stream=stream).status_code == 500
        assert gateway.kept.ended.pop().status == 500
    entry = gateway.declare(targets=(bad, good))
    gateway.router.chance = iter([0.9, 0.1]).__next__
    assert gateway.post(stream=stream).status_code == 200
    for _ in range(2):
        gateway.router.failed(entry, bad)
    assert gateway.router.is_ejected(entry, bad)


def test_a_server_without_count_tokens_keeps_its_health(gateway, upstream):
    fields = {"name": "claude", "upstream": "anthropic"}
    pair = Target(upstream.url, "a"), Target(upstream.url, "b")
    entry = gateway.declare(targets=pair, **fields)
    upstream.script = answers({"type": "error", "error": {"type": "not_found"}}, 404)
    for _ in range(6):
        path = "/v1/messages/count_tokens"
        assert gateway.post(path=path, model="claude").status_code == 404
    assert not any(gateway.router.is_ejected(entry, target) for target in pair)
    for _ in range(3):
        gateway.post(path="/v1/messages", model="claude", max_tokens=1)
    assert all(gateway.router.is_ejected(entry, target) for target in pair)


# ── Fallbacks ───────────────────────────────────────────────────────────────────────

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
    names = ("absent", "hidden", "plain", "vectors", "good")
    declare("small", fallbacks=names)
    declare("hidden", allow=Allow(everyone=False, tenants=frozenset({"globex"})))
    declare("plain", supports=frozenset({"streaming"}))
    declare("vectors", inference_type="embedding")
    declare("good", supports=frozenset({"tools"}))
    upstream.script = by_model(small=answers({}, 503), good=answers(COMPLETION))
    response = gateway.post(tools=[TOOL])
    assert (response.status_code, response.headers[ANSWERED_BY]) == (200, "good")
    assert called(upstream) == ["small", "good"]
    del gateway.known["good"]
    assert gateway.post(tools=[TOOL]).status_code == 500


@STREAM_OR_NOT
def test_a_refusal_is_final(gateway, upstream, declare, stream):
    pair = Target(upstream.url, "small"), Target(upstream.url, "small")
    gateway.declare(targets=pair, fallbacks=("other",))
    declare("other")
    upstream.script = by_model(small=answers({"error": {"message": "no"}}, 400))
    response = gateway.post(stream=stream)
    assert (response.status_code, response.json()) == (400, {"detail": "no"})
    assert called(upstream) == ["small"]


def test_after_the_first_chunk_nobody_else_is_called(gateway, upstream, declare):
    pair = Target(upstream.url, "small"), Target(upstream.url, "small")
    gateway.declare(targets=pair, fallbacks=("other",))
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


@pytest.mark.parametrize(
    ("name", "value"),
    [("gpt-5", "gpt-5"), ("größe", "gr%C3%B6%C3%9Fe"), ("a\nb", "a%0Ab")],
)
def test_any_name_can_stand_in_the_header(name, value):
    assert header_value(name) == value


# ── Requests at once ────────────────────────────────────────────────────────────────


def test_requests_at_once_are_limited_and_a_place_is_given_back(gateway, upstream):
    gateway.limits.at_once = 1
    is_refused = asyncio.Event()
    upstream.script = sends(STREAM[0], is_refused, *STREAM[1:])
    with gateway.events() as first:
        next(first)
        second = gateway.post()
        upstream.loop.set(is_refused)
        assert len(list(first)) == 2
    assert (second.status_code, second.headers["Retry-After"]) == (429, "1")
    assert gateway.settled(lambda: gateway.limits.running == 0)
    upstream.script = answers(COMPLETION)
    assert gateway.post().status_code == 200

"""Order of targets, ejection and recovery; and how much one caller may ask for."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from gateway.chat import routing
from gateway.chat.metering.limits import Limits
from gateway.chat.routing import Router
from gateway.configuration.shapes import ModelEntry, Target
from gateway.identity import Caller
from tests.gateway.chat.harness import STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    STREAM,
    answers,
    greeting,
    sends,
)
from webhooks_core.web.errors import TooManyRequestsError

HEAVY, LIGHT = Target("http://a/v1", "m", weight=9), Target("http://b/v1", "m")
PAIR = ModelEntry("pair", "openai", (HEAVY, LIGHT))
ADA = Caller("acme", "ada")


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


def test_with_the_balance_of_latency_the_faster_target_is_called_more_often():
    one, other = Target("http://a/v1", "m"), Target("http://b/v1", "m")
    entry = ModelEntry("fast", "openai", (one, other), balance="latency")
    router = Router()
    router.succeeded(entry, one, 0.9)
    # What is not known counts as the best.
    firsts = Counter(router.order(entry)[0] for _ in range(2000))
    assert 850 < firsts[one] < 1150
    router.succeeded(entry, other, 0.1)
    firsts = Counter(router.order(entry)[0] for _ in range(2000))
    # 200 are expected, with a deviation of 13.
    assert 130 < firsts[one] < 270
    for _ in range(30):
        router.succeeded(entry, one, 0.1)
    firsts = Counter(router.order(entry)[0] for _ in range(2000))
    assert 850 < firsts[one] < 1150


@STREAM_OR_NOT
def test_the_latency_of_each_answer_is_noted(gateway, upstream, stream):
    targets = Target(upstream.url, "a"), Target(upstream.url, "b")
    entry = gateway.declare(targets=targets, balance="latency")
    upstream.script = greeting(stream=stream)
    for _ in range(2):
        assert gateway.post(stream=stream).status_code == 200
    assert gateway.router._latencies(entry).keys() == set(targets)
    assert gateway.router._latency_s
    gateway.router._latency_s.clear()
    gateway.declare(targets=targets)
    assert gateway.post(stream=stream).status_code == 200
    assert not gateway.router._latency_s


def test_what_is_remembered_of_targets_is_bounded(monkeypatch):
    monkeypatch.setattr(routing, "MAX_KNOWN", 2)
    router = Router(clock=Clock())
    for number in range(5):
        router.succeeded(
            ModelEntry("m", "openai", (), balance="latency"),
            Target("http://a/v1", str(number)),
            1,
        )
        assert len(router._latency_s) <= 2
    targets = [Target("http://a/v1", str(number)) for number in range(5)]
    for target in targets:
        router.failed(PAIR, target, retry_after=60)
    assert sum(router.is_ejected(PAIR, target) for target in targets) <= 2


def test_a_target_that_asks_for_a_pause_gets_it_at_once():
    clock = Clock()
    router = Router(clock=clock)
    router.failed(PAIR, HEAVY, retry_after=30)
    assert ejected_s(router, clock) == 30


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


# ── Limits ──────────────────────────────────────────────────────────────────────────


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


def test_who_may_have_two_at_once_gets_a_third_when_one_ends():
    limits = Limits(at_once=2)
    limits.enter(ADA)
    limits.enter(ADA)
    with pytest.raises(TooManyRequestsError):
        limits.enter(ADA)
    limits.leave(ADA)
    assert limits.running == 1
    limits.enter(ADA)

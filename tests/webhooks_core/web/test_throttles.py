"""A rate limit counts each of the requests that arrive at the same moment."""

from __future__ import annotations

import time

import pytest
from django.core.cache import cache
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from gateway.identity import Caller
from gateway.throttles import CreateThrottle
from recording.throttles import AccountThrottle, seconds_to_wait
from tests.running import PATIENCE_S
from tests.threads import at_once
from webhooks_core.web import errors, throttles

LIMIT, REQUESTS = 3, 12


class SlowCache:
    """The cache, with a pause that lets every other request read the same list."""

    add, delete, set = cache.add, cache.delete, cache.set

    def get(self, key: str, default: object) -> object:
        found = cache.get(key, default)
        time.sleep(0.01)
        return found


@pytest.fixture(autouse=True)
def slow_cache(monkeypatch):
    cache.clear()
    monkeypatch.setattr(SimpleRateThrottle, "cache", SlowCache())
    monkeypatch.setattr(throttles, "LOCK_S", PATIENCE_S)  # no holder is dead, only slow
    yield
    cache.clear()


def test_an_address_gets_its_rate_from_simultaneous_requests(rf, settings):
    settings.OAUTH_RATES = {"token": f"{LIMIT}/hour"}

    def ask():
        return seconds_to_wait(rf.post("/oauth/token"), "token") == 0

    assert sum(at_once(REQUESTS, ask)) == LIMIT


def test_an_account_gets_its_rate_from_simultaneous_requests(rf, settings):
    settings.RECORDING_RATES = {"test": f"{LIMIT}/hour"}
    request = rf.post("/v1/webhooks")
    request.user = type("Account", (), {"pk": 1})

    def ask():
        try:
            return AccountThrottle("test").allow_request(request, None)
        except errors.TooManyRequestsError:
            return False

    assert sum(at_once(REQUESTS, ask)) == LIMIT


def test_simultaneous_creations_all_count(rf, settings):
    settings.GATEWAY_RATES = {"create": f"{REQUESTS}/hour"}
    request = rf.post("/v1/webhooks/subscriptions")
    request.user = Caller("acme", "ada", 1)
    at_once(REQUESTS, lambda: CreateThrottle().count(request, APIView()))
    assert not CreateThrottle().allow_request(request, APIView())


def test_many_names_in_the_cache_reset_no_rate(rf, settings):
    settings.OAUTH_RATES = {"token": f"{LIMIT}/minute"}
    request = rf.post("/oauth/token")
    for _ in range(LIMIT):
        seconds_to_wait(request, "token")
    for name in range(1000):
        cache.set(f"other:{name}", 1, 60)
    assert seconds_to_wait(request, "token")


def test_a_lock_whose_holder_died_stops_nobody_for_long(rf, settings, monkeypatch):
    monkeypatch.setattr(throttles, "LOCK_S", 0.1)
    settings.OAUTH_RATES = {"token": f"{LIMIT}/hour"}
    cache.add("oauth:token:127.0.0.1.lock", 1, None)
    assert seconds_to_wait(rf.post("/oauth/token"), "token") == 0


def test_another_project_names_the_rate_in_its_class(rf):
    class Burst(throttles.ExactRateThrottle):
        scope = "burst"
        THROTTLE_RATES = {"burst": f"{LIMIT}/hour"}

        def get_cache_key(self, request, view):
            return "burst"

    allowed = [Burst().allow_request(rf.get("/"), APIView()) for _ in range(LIMIT + 1)]
    assert allowed == [True] * LIMIT + [False]

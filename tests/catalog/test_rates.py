"""Limits of requests per address and per token."""

from __future__ import annotations

import pytest
import time_machine
from django.core.cache import cache, caches
from redis.exceptions import ConnectionError as RedisConnectionError

pytestmark = pytest.mark.django_db
START = "2030-01-01T10:00:45Z"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        cache.clear()
        yield traveller
        cache.clear()


@pytest.fixture
def send(client):
    def get(address="192.0.2.1", token=""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        query = {"query": "{ __typename }"}
        return client.get("/graphql", query, headers=headers, REMOTE_ADDR=address)

    return get


def test_there_is_no_limit_by_default(send):
    assert {send().status_code for _ in range(30)} == {200}


def test_an_address_has_its_number_of_requests_in_each_period(send, settings, clock):
    settings.CATALOG_ADDRESS_RATE = "3/minute"
    assert [send().status_code for _ in range(4)] == [200, 200, 200, 429]
    refusal = send()
    assert refusal["Retry-After"] == "15"
    assert refusal["Cache-Control"] == "no-store"
    assert refusal.json() == {
        "errors": [
            {
                "message": "Too many requests: an address may send 3 per minute; "
                "try again in 15 s.",
                "extensions": {"code": "TOO_MANY_REQUESTS", "retryAfter": 15},
            }
        ]
    }
    assert send("192.0.2.2").status_code == 200
    clock.shift(15)
    assert send().status_code == 200


@pytest.mark.parametrize("other", ["2001:db8::2", "2001:db8::ffff"])
def test_an_ipv6_address_is_counted_by_its_network(send, settings, other):
    settings.CATALOG_ADDRESS_RATE = "1/hour"
    assert send("2001:db8::1").status_code == 200
    assert send(other).status_code == 429
    assert send("2001:db8:0:1::1").status_code == 200


def test_a_token_is_counted_wherever_it_is_used(send, settings):
    settings.CATALOG_TOKEN_RATE = "1/day"
    assert send(token="one").status_code == 200
    refusal = send("192.0.2.9", token="one")
    assert refusal.status_code == 429
    assert "a token may send 1 per day" in refusal.json()["errors"][0]["message"]
    assert send(token="two").status_code == 200
    assert {send().status_code for _ in range(3)} == {200}


def test_what_is_refused_is_not_executed(client, settings, shelf):
    settings.CATALOG_ADDRESS_RATE = "1/minute"
    body = {"query": 'mutation { deleteBook(id: "1") }'}
    first, second = (
        client.post("/graphql", body, "application/json").status_code for _ in range(2)
    )
    assert (first, second) == (200, 429)
    assert client.get("/graphql", headers={"accept": "text/html"}).status_code == 200


def test_a_cache_that_is_away_is_an_outage(send, settings, monkeypatch):
    settings.CATALOG_ADDRESS_RATE = "1/minute"

    def away(*_args: object, **_options: object):
        raise RedisConnectionError("redis.internal refused")

    monkeypatch.setattr(type(caches["default"]), "add", away)
    response = send()
    assert response.status_code == 503
    assert "Retry-After" in response
    assert b"redis.internal" not in response.content

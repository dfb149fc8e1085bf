"""Both stores of the cache keep, expire and bound answers in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
import time_machine
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from gateway.chat.cache_models import CachedAnswer
from gateway.chat.caching import stores
from gateway.chat.caching.slots import Slot
from gateway.chat.caching.stores import (
    DatabaseStore,
    RedisStore,
    forget_answers,
    store,
)
from gateway.chat.metering.budget_stores import StoreUnavailableError
from gateway.chat.metering.limits import redis_client
from gateway.chat.metering.usage import prune
from gateway.configuration.shapes import CacheSettings
from tests.gateway.chat.metering.budgeting import finished, in_thread, ran

pytestmark = pytest.mark.django_db


def slot(key: str = "a", tenant: str = "acme", **settings: Any) -> Slot:
    values = CacheSettings(**{"ttl_s": 60, "max_entries": 2} | settings)
    return Slot(key * 64, tenant, "test model", values)


@pytest.fixture(params=["database", "redis"])
def use(request) -> Callable[..., Any]:
    """Call a method of a store, each time of another process."""
    if request.param == "redis":
        if not settings.REDIS_URL:
            pytest.skip("there is no Redis: REDIS_URL is empty")
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            for name in client.scan_iter(f"{stores.NAME}*"):
                client.delete(name)

    def call(method: str, *arguments: Any) -> Any:
        each: DatabaseStore | RedisStore = DatabaseStore(in_thread)
        if request.param == "redis":
            each = RedisStore(redis_client(settings.REDIS_URL))
        return ran(each, getattr(each, method)(*arguments))

    return call


def test_an_answer_is_kept_and_replaced(use):
    assert use("read", slot()) is None
    use("write", slot(), b"one")
    use("write", slot(), b"two")
    assert use("read", slot()) == b"two"
    assert use("read", slot("b")) is None


def test_the_oldest_above_the_limit_of_the_model_are_removed(use):
    for key in "abc":
        use("write", slot(key, ttl_s=60 + ord(key)), key.encode())
    assert [use("read", slot(key)) for key in "abc"] == [None, b"b", b"c"]


@pytest.mark.parametrize("use", ["redis"], indirect=True)
def test_redis_forgets_a_tenant_alone(use):
    use("write", slot("a"), b"one")
    use("write", slot("b", tenant="acme:x"), b"two")
    forget_answers(settings.REDIS_URL, "acme")
    assert use("read", slot("a")) is None
    assert use("read", slot("b", tenant="acme:x")) == b"two"


def test_an_expired_row_is_not_given_and_removed():
    database = DatabaseStore(in_thread)
    for key, ttl_s in (("a", 60), ("b", 120)):
        finished(database.write(slot(key, ttl_s=ttl_s), b"x"))
    later = timezone.now() + timedelta(seconds=90)
    with time_machine.travel(later, tick=False):
        assert finished(database.read(slot("a"))) is None
        assert finished(database.read(slot("b"))) == b"x"
        prune()
    assert [row.key for row in CachedAnswer.objects.all()] == ["b" * 64]


def test_the_store_of_an_installation_is_redis_if_it_has_one():
    assert isinstance(store(in_thread, ""), DatabaseStore)
    assert isinstance(store(in_thread, "redis://127.0.0.1:1/0"), RedisStore)


def test_a_store_that_is_away_says_so():
    away = RedisStore(redis_client("redis://127.0.0.1:1/0"))

    async def fails(_: Any) -> None:
        raise OperationalError("no space")

    for each, why in (
        (away, "ConnectionError"),
        (DatabaseStore(fails), "no space"),
    ):
        for work in (each.read(slot()), each.write(slot(), b"")):
            with pytest.raises(StoreUnavailableError, match=why):
                asyncio.run(work)

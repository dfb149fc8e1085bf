"""The stores of counters: what holds for both, and what each adds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from gateway.chat.budget_models import Budget, BudgetCounter
from gateway.chat.metering import budget_stores
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.budget_stores import (
    DatabaseStore,
    RedisStore,
    Store,
    Stored,
    StoreUnavailableError,
    Use,
    add_to_rows,
)
from gateway.chat.metering.limits import redis_client
from gateway.chat.metering.usage import prune
from gateway.erasure import tenant_erasure
from tests.gateway.chat.factories import ModelPriceFactory
from tests.gateway.chat.metering.budgeting import in_thread, ran

NOW = int(time.time())
ONE = CounterKey("monthly", "tenant acme", NOW - 100, "acme")
OTHER = ONE._replace(window=NOW - 50)
ALL = CounterKey("all", "", NOW - 100, "")


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A Redis whose counters are removed."""
    if not settings.REDIS_URL:
        pytest.skip("there is no Redis: REDIS_URL is empty")
    yield settings.REDIS_URL
    with redis.from_url(settings.REDIS_URL) as client:
        client.delete(*map(budget_stores.redis_name, (ONE, OTHER, ALL)))


@pytest.fixture(params=["database", "redis"])
def make(request, db) -> Callable[[], Store]:
    """Return a store of another process each time."""
    if request.param == "database":
        return lambda: DatabaseStore(in_thread)
    url = request.getfixturevalue("redis_url")
    return lambda: RedisStore(redis_client(url))


def add(
    store: Store, uses: Mapping[CounterKey, tuple[int, int]]
) -> dict[CounterKey, int]:
    """Add (total, sent); return the amounts."""
    added = store.add({key: Use(*use, NOW + 3600) for key, use in uses.items()})
    return {key: value.amount for key, value in ran(store, added).items()}


def test_processes_see_the_sum_of_what_all_have_used(make):
    first, second = make(), make()
    assert add(first, {ONE: (5, 0), ALL: (0, 0)}) == {ONE: 5, ALL: 0}
    assert add(second, {ONE: (10**15, 0), OTHER: (2, 0)}) == {ONE: 10**15 + 5, OTHER: 2}
    assert add(first, {ONE: (7, 5), OTHER: (0, 0)}) == {ONE: 10**15 + 7, OTHER: 2}


def test_many_counters_are_shared_at_once(make):
    many = {ONE._replace(subject=f"tenant {n}"): (n, 0) for n in range(500)}
    assert add(make(), many) == {key: total for key, (total, _) in many.items()}


def test_a_store_that_is_away_says_so(monkeypatch):
    def fails(_: Any) -> Any:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(budget_stores, "add_to_rows", fails)
    away = RedisStore(redis_client("redis://127.0.0.1:1/0"))
    for store, why in (
        (DatabaseStore(in_thread), "OperationalError: database or disk is full"),
        (away, "ConnectionError"),
    ):
        with pytest.raises(StoreUnavailableError, match=why):
            add(store, {ONE: (1, 0)})


# ── The database ────────────────────────────────────────────────────────────────────


@pytest.mark.django_db
def test_one_statement_adds_to_all_counters(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert add_to_rows({}) == ({}, "")
    with django_assert_num_queries(1):
        stored, _ = add_to_rows({ALL: 1, OTHER: 2})
    assert stored == {ALL: Stored(1, 0), OTHER: Stored(2, 0)}


@pytest.mark.django_db
def test_as_many_counters_as_callers_are_written():
    many = {ONE._replace(subject=f"tenant {n}"): n for n in range(10_000)}
    assert {key: stored.amount for key, stored in add_to_rows(many)[0].items()} == many


@pytest.mark.django_db
def test_a_counter_is_found_whoever_it_belonged_to():
    add_to_rows({ONE._replace(tenant=""): 1})
    assert add_to_rows({ONE: 1})[0] == {ONE: Stored(2, 0)}


@pytest.mark.django_db
def test_the_statement_says_whether_budgets_or_prices_have_changed():
    def changed(act: Callable[[], Any]) -> bool:
        before = add_to_rows({ONE: 1})[1]
        assert before == budget_stores.version() == add_to_rows({ONE: 1})[1]
        act()
        return add_to_rows({ONE: 1})[1] != before

    row, price = Budget(name="b", definition="{}"), ModelPriceFactory.build()
    for saved in (row, price):
        assert changed(saved.save)
        assert changed(saved.save)
        assert changed(saved.delete)


@pytest.mark.django_db
def test_counters_of_old_windows_are_pruned():
    now = int(timezone.now().timestamp())
    for age in (0, 40, 70):
        add_to_rows({ONE._replace(window=now - age * 86_400): 1})
    prune()
    assert BudgetCounter.objects.count() == 2


# ── Redis ───────────────────────────────────────────────────────────────────────────


def test_what_is_sent_to_redis_twice_counts_once(redis_url):
    store = RedisStore(redis_client(redis_url))
    for _ in range(2):
        assert add(store, {ONE: (5, 0)}) == {ONE: 5}


def test_a_redis_that_lost_its_memory_learns_again_what_processes_have_used(redis_url):
    store = RedisStore(redis_client(redis_url))
    add(store, {ONE: (5, 0)})
    with redis.from_url(redis_url) as client:
        client.delete(budget_stores.redis_name(ONE))
    assert add(store, {ONE: (6, 5)}) == {ONE: 6}


def test_redis_forgets_a_counter_after_its_window_and_holds_no_name(redis_url):
    add(RedisStore(redis_client(redis_url)), {ONE: (5, 0)})
    name = budget_stores.redis_name(ONE)
    assert "acme" not in name
    with redis.from_url(redis_url) as client:
        left = int(client.ttl(name))
    assert 0 < left <= 3600 + budget_stores.KEPT_S + 60


@pytest.mark.django_db
def test_an_erased_tenant_leaves_nothing_in_redis(redis_url):
    store = RedisStore(redis_client(redis_url))
    add(store, {ONE: (5, 0), ALL: (7, 0)})
    add_to_rows({ONE: 5, ALL: 7})
    tenant_erasure("acme").erase()
    assert add(store, {ONE: (0, 0), ALL: (7, 7)}) == {ONE: 0, ALL: 7}

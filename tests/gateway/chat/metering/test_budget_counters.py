from __future__ import annotations

import pytest
from django.utils import timezone

from gateway.chat.metering import budget_counters
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.usage import prune
from gateway.chat.models import BudgetCounter

pytestmark = pytest.mark.django_db
ONE = CounterKey("monthly", "tenant acme", 1_700_000_000, "acme")
OTHER = ONE._replace(window=1_800_000_000)
ALL = CounterKey("all", "", 1_700_000_000, "")


def test_counters_are_created_added_to_and_read(django_assert_num_queries):
    assert budget_counters.add({ONE: 5, ALL: 0}) == {ONE: 5, ALL: 0}
    with django_assert_num_queries(1):
        assert budget_counters.add({ALL: 1, OTHER: 2, ONE: 10**15}) == {
            ALL: 1,
            OTHER: 2,
            ONE: 10**15 + 5,
        }
    assert BudgetCounter.objects.get(tenant="acme", window=ONE.window).amount > 10**15


def test_nothing_is_asked_for_no_counters(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert budget_counters.add({}) == {}


def test_as_many_counters_as_callers_are_written():
    many = {ONE._replace(subject=f"tenant {n}"): n for n in range(10_000)}
    assert budget_counters.add(many) == many


def test_counters_of_old_windows_are_pruned():
    now = int(timezone.now().timestamp())
    for age in (0, 40, 70):
        budget_counters.add({ONE._replace(window=now - age * 86_400): 1})
    prune()
    assert BudgetCounter.objects.count() == 2

"""Endpoints that hang: after time-outs in a row they get one request at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    late_connection,
    ok,
    timed_out,
)
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core import endpoints
from webhooks_core.dispatch.retry import RetryPolicy
from webhooks_core.models import Delivery, Endpoint, EndpointQueue
from webhooks_core.upkeep import stats
from webhooks_core.upkeep.sweep import sweep

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

URL = "http://127.0.0.1:9/hook"


@pytest.fixture(autouse=True)
def patient(use_profile):
    """A profile that does not disable: 1 minute, then 5, then 5 times 15."""
    use_profile(disable_after=None, retry=RetryPolicy((60, 300, *[900] * 5)))


@pytest.fixture
def hanging(clock) -> Endpoint:
    """An endpoint of which four attempts have timed out, and three deliveries are due."""
    target = EndpointFactory.create(url=URL, max_in_flight=2)
    publish_events(4)
    dispatcher = SteppedDispatcher()
    dispatcher.record(dispatcher.claim(), timed_out)
    dispatcher.finish()
    publish_events(3)
    target.refresh_from_db()
    return target


def time_out_after(clock, dispatcher: SteppedDispatcher, pauses: list[int]) -> None:
    """Let a probe time out after each of these pauses in seconds, before which there is none."""
    for pause in pauses:
        clock.shift(pause - 1)
        assert dispatcher.claim() == []
        clock.shift(1)
        [probe] = dispatcher.claim()
        dispatcher.record([probe], timed_out)


def test_time_outs_in_a_row_leave_one_probe_at_a_time(clock, hanging):
    assert (hanging.timeouts, hanging.hanging_since) == (4, timezone.now())
    dispatcher = SteppedDispatcher()
    assert dispatcher.claim() == []
    clock.shift(2)
    probe = dispatcher.claim()
    assert len(probe) == 1
    assert dispatcher.claim() == []
    dispatcher.record([probe[0]], ok)
    hanging.refresh_from_db()
    assert (hanging.timeouts, hanging.hanging_since) == (0, None)
    assert len(dispatcher.claim()) == 2  # all that is due


def test_the_pauses_between_probes_grow_up_to_the_first_of_the_policy(clock, hanging):
    dispatcher = SteppedDispatcher()
    publish_events(9)
    time_out_after(clock, dispatcher, [2, 4, 8, 16, 32, 60, 60, 60])


def test_a_retry_is_never_later_than_the_policy_says(clock, hanging):
    """With nothing else due, a delivery's attempts are where they would be anyway."""
    Delivery.objects.filter(attempts=0).delete()
    Delivery.objects.exclude(pk=Delivery.objects.order_by("pk")[0].pk).delete()
    time_out_after(clock, SteppedDispatcher(), [60, 300, *[900] * 5])
    assert Delivery.objects.values_list("status", "attempts").get() == (2, 8)


def test_another_failure_ends_a_row_of_time_outs_only_before_it_hangs(clock):
    target = EndpointFactory.create(url=URL, max_in_flight=4)
    publish_events(7)
    dispatcher = SteppedDispatcher()
    requests = dispatcher.claim()
    dispatcher.record(requests[:2], timed_out)
    dispatcher.record([requests[2]], failed)
    dispatcher.record(requests[3:5], late_connection)
    target.refresh_from_db()
    assert (target.timeouts, target.hanging_since) == (2, None)
    dispatcher.record([requests[5], requests[6]], timed_out, failed)
    target.refresh_from_db()
    assert (target.timeouts, target.hanging_since) == (3, timezone.now())
    assert target.consecutive_failures == 7


def test_the_limit_of_failures_disables_it_as_before(clock, hanging, use_profile):
    use_profile(disable_after=6)
    time_out_after(clock, SteppedDispatcher(), [2, 4])
    hanging.refresh_from_db()
    assert hanging.is_disabled


@pytest.mark.parametrize("change", ["url", "enable"])
def test_a_new_url_or_an_operator_ends_it(clock, hanging, change):
    if change == "url":
        endpoints.update(hanging, url=f"{URL}/new")
    else:
        endpoints.enable(hanging)
    assert len(SteppedDispatcher().claim()) == 3


def test_waiting_for_a_probe_is_neither_a_repair_nor_lag(clock, hanging):
    dispatcher = SteppedDispatcher()
    publish_events(4)
    time_out_after(clock, dispatcher, [2, 4, 8, 16])
    assert dispatcher.claim() == []
    dispatcher.finish()
    clock.shift(20)
    assert sweep().repaired_queues == 0
    assert stats.oldest_due(timezone.now()) == timedelta(0)
    assert stats.engine_stats().hanging == 1
    clock.shift(12)
    assert len(SteppedDispatcher().claim()) == 1


def test_a_clock_that_is_set_back_does_not_delay_the_probe(clock, hanging):
    clock.shift(-3600)
    Delivery.objects.update(next_attempt_at=timezone.now())
    EndpointQueue.objects.update(next_due_at=timezone.now())
    assert len(SteppedDispatcher().claim()) == 1

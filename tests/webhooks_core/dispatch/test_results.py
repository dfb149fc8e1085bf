"""Results become rows: counters, disabling, retries, and the fencing token."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from tests.clock import travel
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
    timed_out,
)
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.profiles import RetryPolicy

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")


@pytest.mark.spec("gateway", "last_attempt_at changes with attempts, updated_at not")
@pytest.mark.parametrize("result_of", [ok, failed, timed_out])
def test_every_attempt_moves_last_attempt_at_alone(result_of):
    target = EndpointFactory.create()
    publish_event()
    with travel(timezone.now() + timedelta(hours=1)):
        SteppedDispatcher().attempt(result_of)
    before = target.updated_at
    target.refresh_from_db()
    assert target.updated_at == before
    assert target.last_attempt_at is not None
    assert target.last_attempt_at > before + timedelta(minutes=59)


def test_a_retry_after_holds_for_the_delivery_that_got_it_alone(use_profile):
    use_profile(retry=RetryPolicy((10, 10), retry_after_cap=30))
    EndpointFactory.create(max_in_flight=3)
    publish_events(3)
    with travel(timezone.now(), tick=False) as clock:
        clock.shift(1)
        asked = partial(failed, code=503, retry_after=17)
        SteppedDispatcher().attempt(failed, asked, failed)
        due = Delivery.objects.order_by("pk").values_list("next_attempt_at", flat=True)
        pauses = [(at - timezone.now()).total_seconds() for at in due if at]
    assert pauses == [10, 17, 10]


def test_the_result_of_a_removed_delivery_does_not_affect_the_others():
    EndpointFactory.create(max_in_flight=2)
    gone = publish_event()
    publish_event()
    dispatcher = SteppedDispatcher()
    requests = dispatcher.claim()
    gone.delete()
    dispatcher.record(requests, ok)
    assert only_delivery().status == Delivery.Status.DELIVERED


def test_an_endpoint_that_hangs_gets_one_request_at_a_time_until_a_success(use_profile):
    use_profile(disable_after=None)
    target = EndpointFactory.create(max_in_flight=4)
    publish_events(12)
    dispatcher = SteppedDispatcher()
    dispatcher.attempt(*[timed_out] * 3, failed)
    assert Endpoint.objects.get().is_hanging
    for _ in range(3):
        assert len(dispatcher.attempt(failed)) == 1
    assert len(dispatcher.attempt(ok)) == 1
    target.refresh_from_db()
    assert not target.is_hanging
    assert target.timeouts == 0

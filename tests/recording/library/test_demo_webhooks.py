"""The sample webhooks of a new instance: three endpoints, each with its day, and nothing to send."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone

from recording.library import demo_webhooks
from tests.signatures import verify_sha256
from tests.webhooks_core.admin.looking import page
from tests.webhooks_core.engine import count_attempts, dispatch
from webhooks_core.models import Attempt, Delivery, Endpoint, Event, SkippedEvent
from webhooks_core.owners import charts, endpoint_state
from webhooks_core.owners.endpoint_state import Health

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sample() -> dict[str, Endpoint]:
    """The three endpoints by the names of their stories."""
    demo_webhooks.load()
    return {row.url.rpartition("/")[2]: row for row in Endpoint.objects.all()}


def test_one_works_one_fails_and_one_is_disabled(sample):
    states = endpoint_state.describe_all(list(sample.values()))
    by_name = {name: states[row.pk] for name, row in sample.items()}
    assert {name: state.state for name, state in by_name.items()} == {
        "shop": Health.HEALTHY,
        "billing": Health.FAILING,
        "archive": Health.DISABLED,
    }
    assert by_name["shop"].sentence.startswith("Delivers. Last success: ")
    assert '12 attempts, all HTTP 500 `{"error":' in by_name["billing"].sentence
    assert "20 attempts, all HTTP 500" in by_name["archive"].sentence
    assert by_name["archive"].waiting == 1
    assert by_name["archive"].skipped == SkippedEvent.objects.count() == 8


def test_nothing_is_sent_and_nobody_is_alerted(sample):
    assert dispatch() == 0
    call_command("webhooks_sweep", "--json")
    assert dispatch() == 0
    assert Attempt.objects.filter(started_at__gt=timezone.now()).count() == 0
    assert not get_user_model().objects.get(username="sample").has_usable_password()


def test_the_rows_are_those_of_a_day_with_true_signatures(sample):
    assert Event.objects.count() == 24
    assert Delivery.objects.count() == 3 * 24 - 8
    times = list(Delivery.objects.order_by("pk").values_list("created_at", flat=True))
    assert times == sorted(times)  # lists find a range of time by the ids
    for delivery in Delivery.objects.all():
        attempts = list(delivery.attempt_set.order_by("number"))
        assert [each.number for each in attempts] == [*range(1, delivery.attempts + 1)]
        assert attempts[0].started_at == delivery.created_at
    last = Attempt.objects.select_related("delivery__event").latest("started_at")
    assert timezone.now() - last.started_at < timedelta(hours=1)
    headers = dict(
        line.split(": ", 1) for line in last.details["request"].split("\r\n")
    )
    secret = last.delivery.endpoint.secrets(now=timezone.now())[0]
    verify_sha256(
        secret,
        timestamp=headers["X-Recording-Timestamp"],
        signature=headers["X-Recording-Signature"],
        body=bytes(last.delivery.event.body),
        now=last.started_at.timestamp(),
        tolerance_s=1,
    )


def test_a_second_start_adds_nothing(sample):
    demo_webhooks.load()
    assert Endpoint.objects.count() == 3


def test_charts_and_pages_show_it(admin_client, sample):
    count_attempts()
    days = charts.of_endpoints(list(sample.values()), now=timezone.now())
    assert days[sample["shop"].pk].success
    for row in sample.values():
        page(admin_client, f"/admin/webhooks_core/endpoint/{row.pk}/change/")
    path = "/admin/webhooks_core/delivery/?status__exact=2&created=24h"
    assert "5 deliver" in page(admin_client, path)
    failed = Delivery.objects.filter(status=Delivery.Status.FAILED).latest("pk")
    text = page(admin_client, f"/admin/webhooks_core/delivery/{failed.pk}/change/")
    assert "no such table: orders" in text
    assert "X-Recording-Signature" in text

"""The demo data of a user: a recording, and three endpoints that nothing is sent to."""

import pytest
from django.urls import reverse

from recording.library import demo
from recording.models import Recording
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.recording.conftest import imported
from tests.signatures import verify_sha256
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.owners import state
from webhooks_core.owners.state import Health
from webhooks_core.upkeep.sweep import sweep

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_second_start_adds_nothing(user):
    demo.load(user=user)
    assert Recording.objects.get().content == SUMMARY_COMPLETED_SAMPLE
    demo.load(user=user)
    counts = [model.objects.count() for model in (Recording, Endpoint)]
    assert counts == [1, 3]


def test_one_endpoint_works_one_fails_and_one_was_disabled(user):
    demo.load(user=user)
    rows = list(Endpoint.objects.of("recording", str(user.pk)).order_by("pk"))
    told = state.describe_all(rows)
    states = [told[row.pk].state for row in rows]
    assert states == [Health.HEALTHY, Health.FAILING, Health.DISABLED]
    assert "HTTP 500" in told[rows[1].pk].sentence
    assert [row.consecutive_failures for row in rows] == [0, 12, 20]


def test_nothing_is_sent_not_even_the_events_of_this_account(user, mailoutbox):
    demo.load(user=user)
    imported(user, **SUMMARY_COMPLETED_SAMPLE | {"audio_id": "aud_1"})
    sweep()
    before = Attempt.objects.count()
    assert dispatch() == 0
    assert (Attempt.objects.count(), mailoutbox) == (before, [])


def test_its_page_shows_a_failed_delivery_with_a_true_signature(user, client):
    demo.load(user=user)
    attempt = Attempt.objects.filter(status_code=500).earliest("started_at")
    event = attempt.delivery.event
    lines = attempt.details["request"].split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    verify_sha256(
        attempt.delivery.endpoint.secrets(now=attempt.started_at)[0],
        timestamp=headers["X-Recording-Timestamp"],
        signature=headers["X-Recording-Signature"],
        body=bytes(event.body),
        now=attempt.started_at.timestamp(),
        tolerance_s=1,
    )
    client.force_login(user)
    page = client.get(
        reverse("account-webhooks:delivery", args=[attempt.delivery.public_id])
    )
    assert "no such table: orders" in page.content.decode()


def test_its_deliveries_are_listed_by_time(user):
    demo.load(user=user)
    times = list(Delivery.objects.order_by("pk").values_list("created_at", flat=True))
    assert times == sorted(times)

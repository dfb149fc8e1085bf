"""What a person asks for goes first, also where the endpoint hangs."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import publishing, replays
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.endpoints import HANGS_AFTER
from webhooks_core.owners import changes, front

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_a_test_event_is_sent_before_the_backlog():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(3)
        event = publishing.publish_test(target, event_type="thing.made", data={})
        assert dispatch() == 4
    assert event.public_id.encode() in server.requests[0].body


def test_without_a_backlog_it_is_due_now():
    target = EndpointFactory.create()
    assert front.due_first(target) <= timezone.now()


def test_of_an_endpoint_that_hangs_the_next_probe_is_what_was_asked_for():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_events(2)
        asked = Delivery.objects.select_related("endpoint").latest("pk")
        Endpoint.objects.update(timeouts=HANGS_AFTER + 6, hanging_since=timezone.now())
        assert replays.retry_now(asked, by=changes.owner("ada"))
        target.refresh_from_db()
        assert target.timeouts == HANGS_AFTER  # the next probe comes soon
        publish_event()
        assert dispatch() == 3
    assert asked.event.public_id.encode() in server.requests[0].body

"""The dashboard: what is overdue, which dispatchers work, the last day, the worst endpoints."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webhooks_core.admin.looking import SCRIPT, page
from tests.webhooks_core.factories import (
    DispatcherLeaseFactory,
    EndpointFactory,
    publish_event,
)
from webhooks_core import endpoints
from webhooks_core.admin import dispatchers
from webhooks_core.models import (
    Delivery,
    Endpoint,
    EngineState,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

DASHBOARD = "/admin/webhooks_core/dispatcherlease/dashboard/"


def test_an_idle_system_shows_that_nothing_is_overdue(admin_client):
    text = page(admin_client, DASHBOARD)
    for words in (
        "nothing is overdue",
        "none at this moment",
        "No endpoint is failing",
    ):
        assert words in text


def test_the_oldest_due_delivery_of_those_that_may_be_sent_is_shown(admin_client):
    now = timezone.now()
    paused = EndpointFactory.create(owner="bob")
    EndpointFactory.create()
    publish_event(owner="bob")
    publish_event()
    endpoints.pause(paused)
    Delivery.objects.update(next_attempt_at=now - timedelta(hours=2))
    Delivery.objects.filter(endpoint=paused).update(
        next_attempt_at=now - timedelta(hours=9)
    )
    assert "2\xa0hours" in page(admin_client, DASHBOARD)
    Delivery.objects.update(next_attempt_at=now + timedelta(hours=1))
    assert "nothing is overdue" in page(admin_client, DASHBOARD)


def test_dispatchers_and_the_last_sweep_are_shown(admin_client):
    now = timezone.now()
    DispatcherLeaseFactory.create(host="alive")
    DispatcherLeaseFactory.create(slot=1, host="dead", expired=True)
    EngineState.objects.update_or_create(pk=1, defaults={"swept_at": now})
    text = page(admin_client, DASHBOARD)
    assert "on alive (process 1)" in text
    assert "dead" not in text
    assert f"{now:%Y-%m-%d %H:%M:%S} UTC" in text


def test_what_sweeps_repaired_is_shown(admin_client):
    EngineState.objects.update_or_create(
        pk=1, defaults={"expired_leases": 0, "repaired_queues": 0}
    )
    assert "nothing so far" in page(admin_client, DASHBOARD)
    EngineState.objects.update(
        expired_leases=1, repaired_queues=2, woken_at=timezone.now()
    )
    text = page(admin_client, DASHBOARD)
    assert "1 expired dispatcher lease (a worker process died)" in text
    assert "2 stale endpoint queues (a publisher died)" in text
    assert "nothing so far" not in text


def test_a_dispatcher_that_was_woken_and_has_not_started_is_shown(admin_client):
    EngineState.objects.update_or_create(pk=1, defaults={"woken_at": None})
    assert "Dispatcher requested" not in page(admin_client, DASHBOARD)
    at = timezone.now()
    EngineState.objects.update(woken_at=at)
    text = page(admin_client, DASHBOARD)
    assert f"at {at:%Y-%m-%d %H:%M:%S} UTC, and none has started yet" in text


def test_the_endpoints_that_fail_most_come_first(admin_client):
    for number in range(12):
        target = EndpointFactory.create(url=f"http://127.0.0.1:{number + 1}/{SCRIPT}")
        Endpoint.objects.filter(pk=target.pk).update(consecutive_failures=number)
    Endpoint.objects.filter(consecutive_failures=1).update(status=2)
    rows = [row["failures"] for row in dispatchers.worst(timezone.now())]
    assert rows == ["1/3", *(f"{n}/3" for n in range(11, 2, -1))]
    text = page(admin_client, DASHBOARD)
    assert SCRIPT not in text
    assert ">Disabled</span>" in text


def test_dispatcher_leases_are_listed(admin_client):
    lease = DispatcherLeaseFactory.create(host="alive")
    for name in ("", f"{lease.pk}/change/"):
        assert "alive" in page(
            admin_client, f"/admin/webhooks_core/dispatcherlease/{name}"
        )

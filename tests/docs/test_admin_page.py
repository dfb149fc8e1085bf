"""docs/admin.md: what each list of the admin costs, however much there is."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from recording.oauth.admin import HiddenAdmin
from tests.docs.filling import fill_products
from tests.docs.samples import DOCS
from tests.webhooks_core.admin.looking import NOWHERE, page, queries_of
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.ids import public_id
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

TEXT = (DOCS / "admin.md").read_text()
COSTS = {
    name: int(count)
    for name, count in re.findall(
        r"^\| `([a-z/?_=\d]+)` \| (\d+) \|$", TEXT, re.MULTILINE
    )
}
STATUSES = {0: 2, 4: 0}  # of every twentieth delivery, and of the fourth after it
PROFILES = ("plain", "recording")  # the second names its owners
OURS = {"catalog", "gateway", "recording", "webhooks_core"}


def fill(*, endpoints: int, deliveries: int) -> None:
    """Make rows of every kind; of the deliveries a twentieth has failed, and one is held."""
    now = timezone.now()
    endpoint_rows = Endpoint.objects.bulk_create(
        Endpoint(
            public_id=public_id("ep_"),
            profile=PROFILES[number % 2],
            owner=str(number),
            url=f"{NOWHERE}{number}",
            event_types=["thing.made"],
            consecutive_failures=number % 3,
            paused_at=now if number % 4 == 0 else None,
        )
        for number in range(endpoints)
    )
    events = Event.objects.bulk_create(
        Event(
            public_id=public_id("evt_"),
            profile=PROFILES[number % 2],
            owner=str(number),
            type="thing.made",
            size=2,
            body=b"{}",
        )
        for number in range(deliveries)
    )
    rows = Delivery.objects.bulk_create(
        Delivery(
            public_id=public_id("dlv_"),
            event=event,
            endpoint=endpoint_rows[number % len(endpoint_rows)],
            status=(status := STATUSES.get(number % 20, 1)),
            attempts=1,
            next_attempt_at=None if status else now,
            delivered_at=now if status == 1 else None,
        )
        for number, event in enumerate(events)
    )
    Attempt.objects.bulk_create(
        Attempt(delivery=delivery, number=1, started_at=now, outcome="ok")
        for delivery in rows
    )
    DispatcherLease.objects.bulk_create(
        DispatcherLease(host="h", pid=1, expires_at=now, ended_at=now)
        for _ in range(endpoints)
    )


def costs(client, **options: bool) -> dict[str, int]:
    addresses = {name: f"/admin/{name}" for name in COSTS}
    return {n: len(queries_of(client, a, **options)) for n, a in addresses.items()}


def test_the_page_costs_what_the_document_says_whatever_there_is(admin_client):
    EndpointFactory.create()
    publish_event()
    fill(endpoints=12, deliveries=40)
    fill_products(2)
    assert costs(admin_client) == COSTS
    # More than two pages of endpoints and of deliveries.
    fill(endpoints=110, deliveries=300)
    fill_products(28)
    assert costs(admin_client, is_known=True) == COSTS


def test_every_list_of_ours_is_in_the_table_and_all_others_are_answered(admin_client):
    for model, model_admin in admin.site._registry.items():
        meta = model._meta
        address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        page(admin_client, address)
        ours = (
            model_admin.__module__.partition(".")[0] in OURS
            and type(model_admin) is not HiddenAdmin
        )
        assert (address.removeprefix("/admin/") in COSTS) is ours

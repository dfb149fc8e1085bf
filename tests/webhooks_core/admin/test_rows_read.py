"""Lists of millions: filters find the newest ids by index, and the rarest of several counts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.webhooks_core.admin.delivery_pages import LIST, make, shown_ids
from tests.webhooks_core.admin.looking import page, queries_of
from tests.webhooks_core.factories import EndpointFactory
from tests.webhooks_core.reading import rows_read
from webhooks_core import endpoints
from webhooks_core.admin import base
from webhooks_core.models import Attempt, Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOW = timezone.now()
ROWS, SHOWN = 2000, 60  # more than a page


@pytest.fixture
def many(monkeypatch) -> list[str]:
    """Thousands of delivered ones, and three old ones of every other kind; return their ids."""
    monkeypatch.setattr(base, "LISTED_AT_MOST", SHOWN)
    make(ROWS)
    Delivery.objects.filter(replay_number__gte=3).update(
        status=Delivery.Status.DELIVERED, delivered_at=NOW, next_attempt_at=None
    )
    rare = Delivery.objects.filter(replay_number__lt=3)
    paused = endpoints.pause(
        EndpointFactory.create(url="http://127.0.0.1:9/paused", owner="bob")
    )
    rare.update(endpoint=paused, trigger="replay")
    Attempt.objects.filter(delivery__in=rare).update(outcome="tls")
    Attempt.objects.exclude(delivery__in=rare).update(outcome="ok")
    return list(rare.order_by("-pk").values_list("public_id", flat=True))


def test_rare_rows_are_found_behind_thousands_of_newer_rows_and_narrowed(
    admin_client, many
):
    for query in (
        *("status__exact=suspended", "trigger__exact=replay", "error=tls"),
        "status__exact=suspended&trigger__exact=replay&error=tls&type=thing.made",
    ):
        assert shown_ids(page(admin_client, f"{LIST}?{query}")) == many, query
    for query in ("error=tls", "status__exact=2", "status__exact=suspended"):
        for second in ("type=thing.lost", "trigger__exact=test"):
            path = f"{LIST}?{query}&{second}"
            assert shown_ids(page(admin_client, path)) == [], path


@pytest.mark.parametrize("query", ["error=http", "error=http&type=thing.made"])
def test_filters_that_leave_many_say_that_the_newest_are_shown(
    admin_client, monkeypatch, query
):
    monkeypatch.setattr(base, "LISTED_AT_MOST", SHOWN)
    make(3 * SHOWN)
    text = " ".join(page(admin_client, f"{LIST}?{query}").split())
    assert re.search(r"the newest \d+ deliveries", text)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="reads PostgreSQL's plans")
def test_no_list_reads_more_rows_than_its_limit(admin_client, many):
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for query in (
        *("", "p=1", "status__exact=suspended", "status__exact=0", "status__exact=2"),
        *("trigger__exact=replay", "error=tls", "error=timeout", "type=thing.lost"),
        *("q=dlv_5", "type=thing.made&status__exact=2", "error=tls&type=thing.made"),
    ):
        for sql in queries_of(admin_client, f"{LIST}?{query}"):
            if sql.startswith("SELECT"):
                assert rows_read(sql, "webhooks_core_delivery") <= 5 * SHOWN, sql
                assert rows_read(sql, "webhooks_core_attempt") <= 5 * SHOWN, sql


def test_pages_of_a_filtered_list_are_complete(admin_client):
    make(120)
    seen: list[str] = []
    for number in (1, 2, 3):
        seen += shown_ids(page(admin_client, f"{LIST}?error=http&p={number}"))
    assert seen == [f"dlv_{n}" for n in reversed(range(120))]


def test_an_open_attempt_of_a_disabled_endpoint_is_listed_as_pending(
    admin_client, monkeypatch
):
    make(60)
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    early = Delivery.objects.get(replay_number=7)
    soon = NOW - timedelta(minutes=1)
    Delivery.objects.filter(pk=early.pk).update(claimed_by=1, next_attempt_at=soon)
    monkeypatch.setattr(base, "LISTED_AT_MOST", 10)
    EndpointFactory.create(owner="carol")
    ids = shown_ids(page(admin_client, f"{LIST}?status__exact=0"))
    assert ids == [early.public_id]

"""Alerts: once for each incident, after ten minutes or when the endpoint is disabled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Endpoint
from webhooks_core.owners import alerts
from webhooks_core.profiles import Notice, NoticeKind
from webhooks_core.upkeep.sweep import sweep

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits_at_once")]

LATER = alerts.FAILING_AFTER + timedelta(seconds=1)


@pytest.fixture
def notices(use_profile) -> list[Notice]:
    received: list[Notice] = []
    use_profile(on_notice=received.append, disable_after=20)
    return received


def attempt(result) -> None:
    publish_event()
    dispatcher = SteppedDispatcher()
    claimed = dispatcher.claim()
    dispatcher.record(claimed, *[result for _ in claimed])
    dispatcher.finish()


def began(ago: timedelta) -> None:
    Endpoint.objects.update(failing_since=timezone.now() - ago)


def test_an_endpoint_that_fails_for_ten_minutes_is_reported_once(notices):
    target = EndpointFactory.create()
    attempt(failed)
    began(alerts.FAILING_AFTER - timedelta(seconds=30))
    sweep()
    assert notices == []
    began(LATER)
    for _ in range(3):
        sweep()
    [notice] = notices
    target.refresh_from_db()
    assert (notice.kind, notice.endpoint_id) == (NoticeKind.FAILING, target.public_id)
    assert (notice.failures, notice.error) == (1, "HTTP 500")
    assert notice.since == target.failing_since


def test_it_is_reported_once_that_it_works_again(notices):
    EndpointFactory.create()
    attempt(failed)
    began(LATER)
    sweep()
    attempt(ok)
    for _ in range(3):
        sweep()
    assert [notice.kind for notice in notices] == [
        *(NoticeKind.FAILING, NoticeKind.RECOVERED)
    ]
    assert Endpoint.objects.get().alerted_at is None


def test_a_short_incident_is_not_reported_at_all(notices):
    EndpointFactory.create()
    attempt(failed)
    attempt(ok)
    assert alerts.send_due(timezone.now() + LATER) == 0
    assert notices == []


def test_a_disabled_endpoint_is_reported_at_once_and_not_as_failing_later(
    notices, use_profile
):
    use_profile(on_notice=notices.append, disable_after=1)
    EndpointFactory.create()
    attempt(failed)
    assert [(notice.kind, notice.is_first) for notice in notices] == [
        (NoticeKind.DISABLED, True)
    ]
    began(LATER)
    sweep()
    assert len(notices) == 1


def test_an_endpoint_that_was_reported_as_failing_is_reported_as_disabled_too(
    notices, use_profile
):
    use_profile(on_notice=notices.append, disable_after=2)
    EndpointFactory.create()
    attempt(failed)
    began(LATER)
    sweep()
    attempt(failed)
    assert [(notice.kind, notice.is_first) for notice in notices] == [
        *((NoticeKind.FAILING, False), (NoticeKind.DISABLED, False))
    ]


@pytest.mark.parametrize(
    "change",
    [{"paused_at": timezone.now()}, {"active": False}, {"deleted_at": timezone.now()}],
)
def test_an_endpoint_that_receives_nothing_is_not_reported(notices, change):
    EndpointFactory.create(failing_since=timezone.now() - LATER, **change)
    sweep()
    assert notices == []


def test_an_incident_of_which_another_sweep_has_told_is_left_to_it(
    notices, monkeypatch
):
    EndpointFactory.create(failing_since=timezone.now() - LATER)
    real = transaction.atomic

    def overtaken():
        Endpoint.objects.update(alerted_at=timezone.now())
        return real()

    monkeypatch.setattr(transaction, "atomic", overtaken)
    assert alerts.send_due(timezone.now()) == 0
    monkeypatch.undo()
    assert notices == []


def test_each_sweep_costs_the_same_two_queries_when_nothing_is_due(
    django_assert_num_queries, plain
):
    EndpointFactory.create_batch(5)
    with django_assert_num_queries(2):
        alerts.send_due(timezone.now())

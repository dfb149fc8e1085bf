"""Notices: an endpoint was disabled, and works again, once for each incident."""

import pytest
from django.db import transaction
from django.utils import timezone

from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import changes, endpoints
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind
from webhooks_core.upkeep.sweep import sweep

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits_at_once")]


@pytest.fixture
def received(use_profile) -> list[Notice]:
    received: list[Notice] = []
    use_profile(on_notice=received.append, disable_after=2)
    return received


def attempt(result) -> None:
    publish_event()
    dispatcher = SteppedDispatcher()
    dispatcher.attempt(result)
    dispatcher.finish()


def test_a_disabled_endpoint_is_reported_at_once_and_that_it_works_again_once(received):
    target = EndpointFactory.create()
    attempt(failed)
    assert received == []
    attempt(failed)
    [notice] = received
    assert (notice.kind, notice.endpoint_id) == (
        NoticeKind.DISABLED,
        target.public_id,
    )
    assert (notice.failures, notice.error) == (2, "HTTP 500")
    sweep()
    endpoints.update(target, status=Endpoint.Status.ACTIVE)
    sweep()
    assert len(received) == 1  # it has not worked yet
    attempt(ok)
    for _ in range(3):
        sweep()
    assert [each.kind for each in received] == [
        *(NoticeKind.DISABLED, NoticeKind.RECOVERED)
    ]
    assert Endpoint.objects.get().alerted_at is None


def test_failures_that_do_not_disable_are_not_reported(received):
    EndpointFactory.create()
    attempt(failed)
    attempt(ok)
    sweep()
    assert received == []


def test_an_incident_of_which_another_sweep_has_told_is_left_to_it(
    received, monkeypatch
):
    EndpointFactory.create(alerted_at=timezone.now())
    real = transaction.atomic

    def overtaken():
        Endpoint.objects.update(alerted_at=None)
        return real()

    monkeypatch.setattr(transaction, "atomic", overtaken)
    changes.send_recovered()
    monkeypatch.undo()
    assert received == []


def test_an_error_of_the_product_is_only_logged(use_profile, caplog):
    use_profile(on_notice=lambda _: 1 / 0)
    EndpointFactory.create(alerted_at=timezone.now())
    changes.send_recovered()
    assert "notice hook failed" in caplog.text


def test_a_sweep_costs_one_query_when_nothing_is_due(django_assert_num_queries, plain):
    EndpointFactory.create_batch(5)
    with django_assert_num_queries(1):
        changes.send_recovered()

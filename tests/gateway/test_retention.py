"""How long policy decisions and documents are kept."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from gateway import retention
from gateway.models import Document, PolicyDecision
from tests.gateway.factories import DocumentFactory, PolicyDecisionFactory

pytestmark = pytest.mark.django_db


def decide(*, days_ago: float) -> PolicyDecision:
    created = timezone.now() - timedelta(days=days_ago)
    return PolicyDecisionFactory.create(created_at=created)


def document(*, days_ago: float) -> Document:
    created = timezone.now() - timedelta(days=days_ago)
    return DocumentFactory.create(created_at=created)


@pytest.fixture
def ten_days(settings):
    settings.GATEWAY_DECISION_RETENTION_DAYS = 10
    settings.GATEWAY_DOCUMENT_RETENTION_DAYS = 10


@pytest.mark.usefixtures("ten_days")
def test_what_is_older_goes_and_the_rest_stays(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    for _ in range(3):
        decide(days_ago=10.1)
        document(days_ago=10.1)
    kept, young = decide(days_ago=9.9), document(days_ago=9.9)
    with CaptureQueriesContext(connection) as queries:
        assert retention.remove_old() == 6
    assert PolicyDecision.objects.get() == kept
    assert Document.objects.get() == young
    assert not [query for query in queries if '"content"' in query["sql"]]


def test_documents_are_kept_for_ever_unless_a_setting_says_otherwise(settings):
    document(days_ago=20_000)
    decide(days_ago=366)
    decide(days_ago=364)
    assert retention.remove_old() == 1
    settings.GATEWAY_DECISION_RETENTION_DAYS = 0
    decide(days_ago=20_000)
    assert retention.remove_old() == 0


@pytest.mark.usefixtures("ten_days")
def test_a_run_ends_when_its_time_is_up():
    decide(days_ago=11)
    assert retention.remove_old(budget_s=0) == 0


def test_the_worker_does_so_every_hour():
    row = Schedule.objects.get(func="gateway.retention.remove_old")
    assert (row.schedule_type, row.repeats) == (Schedule.HOURLY, -1)

"""How long policy decisions and documents are kept."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from gateway import policy, retention
from gateway.identity import Caller
from gateway.models import Document, PolicyDecision

pytestmark = pytest.mark.django_db


def decide(*, days_ago: float) -> PolicyDecision:
    decision = policy.record_denial(
        caller=Caller("acme", "ada"), action="chat", resource="model:m", reason="no"
    )
    PolicyDecision.objects.filter(pk=decision.pk).update(
        created_at=timezone.now() - timedelta(days=days_ago)
    )
    return decision


def age(answer, *, days_ago: float) -> str:
    document_id = answer.json()["document_id"]
    Document.objects.filter(public_id=document_id).update(
        created_at=timezone.now() - timedelta(days=days_ago)
    )
    return str(document_id)


@pytest.fixture
def ten_days(settings):
    settings.GATEWAY_DECISION_RETENTION_DAYS = 10
    settings.GATEWAY_DOCUMENT_RETENTION_DAYS = 10


@pytest.mark.usefixtures("ten_days")
def test_what_is_older_goes_and_the_rest_stays(acme, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    for number in range(3):
        decide(days_ago=10.1)
        age(acme.ingest(f"old {number}"), days_ago=10.1)
    kept = decide(days_ago=9.9)
    young = age(acme.ingest("young"), days_ago=9.9)
    with CaptureQueriesContext(connection) as queries:
        assert retention.remove_old() == 6
    assert list(PolicyDecision.objects.all()) == [kept]
    assert [item.public_id for item in Document.objects.all()] == [young]
    assert not [query for query in queries if '"content"' in query["sql"]]
    assert acme.ingest("old 1").status_code == 201


def test_documents_are_kept_for_ever_unless_a_setting_says_otherwise(acme, settings):
    age(acme.ingest(), days_ago=20_000)
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

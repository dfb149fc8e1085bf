"""How long policy decisions and documents are kept."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from gateway import policy, retention
from gateway.identity import Caller
from gateway.models import Chunk, Document, PolicyDecision
from gateway.retention import Removed

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
def test_what_is_older_goes_and_the_rest_stays(acme):
    decide(days_ago=10.1)
    kept = decide(days_ago=9.9)
    age(acme.ingest("old"), days_ago=10.1)
    young = age(acme.ingest("young"), days_ago=9.9)
    assert retention.remove_old() == Removed(decisions=1, documents=1)
    assert list(PolicyDecision.objects.all()) == [kept]
    assert [item.public_id for item in Document.objects.all()] == [young]
    assert [item.text for item in Chunk.objects.all()] == ["young"]
    assert retention.remove_old() == Removed()


def test_documents_are_kept_for_ever_unless_a_setting_says_otherwise(acme, settings):
    age(acme.ingest(), days_ago=20_000)
    decide(days_ago=366)
    decide(days_ago=364)
    assert retention.remove_old() == Removed(decisions=1)
    settings.GATEWAY_DECISION_RETENTION_DAYS = 0
    decide(days_ago=20_000)
    assert retention.remove_old() == Removed()
    assert (Document.objects.count(), PolicyDecision.objects.count()) == (1, 2)


@pytest.mark.usefixtures("ten_days")
def test_a_removed_text_is_a_new_document_when_it_comes_again(acme):
    first = age(acme.ingest("The text."), days_ago=11)
    retention.remove_old()
    again = acme.ingest("The text.")
    assert again.status_code == 201
    assert again.json()["document_id"] != first


@pytest.mark.usefixtures("ten_days")
def test_a_batch_is_small_and_never_reads_a_text(acme, monkeypatch):
    monkeypatch.setattr(retention, "DECISIONS", 2)
    monkeypatch.setattr(retention, "DOCUMENTS", 2)
    for number in range(5):
        decide(days_ago=11)
        age(acme.ingest(f"text {number}"), days_ago=11)
    with CaptureQueriesContext(connection) as queries:
        assert retention.remove_old() == Removed(decisions=5, documents=5)
    statements = [query["sql"] for query in queries]
    deleted = [statement for statement in statements if statement.startswith("DELETE")]
    assert len(deleted) == 3 + 3 + 3  # decisions, documents, their chunks
    assert not [statement for statement in statements if '"content"' in statement]


@pytest.mark.usefixtures("ten_days")
def test_a_run_ends_when_its_time_is_up_and_the_command_when_all_is_done(monkeypatch):
    for _ in range(3):
        decide(days_ago=11)
    assert retention.remove_old(budget_s=0) == Removed()
    monkeypatch.setattr(retention, "DECISIONS", 1)
    out = StringIO()
    call_command("prune_gateway", stdout=out)
    assert out.getvalue() == (
        "removed 3 decisions, 0 documents, 0 idempotency keys, 0 portal links\n"
    )


def test_the_worker_does_so_every_hour():
    row = Schedule.objects.get(func="gateway.retention.remove_old")
    assert (row.schedule_type, row.repeats) == (Schedule.HOURLY, -1)

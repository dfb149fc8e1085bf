"""Who changes an endpoint, what and when: one line of the log, after the commit."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from tests.webhooks_core.factories import publish_event
from webhooks_core import endpoints
from webhooks_core.changes import Actor
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import repairs, resending
from webhooks_core.owners.resending import Selection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]
ADA = Actor("owner", "ada")
URL = "https://93.184.216.34/a-secret-path"


@pytest.fixture
def target() -> Endpoint:
    fields: dict[str, Any] = {
        "profile": "plain",
        "owner": "alice",
        "url": URL,
        "by": ADA,
    }
    return endpoints.create(event_types=["thing.made"], **fields).endpoint


def lines(caplog, phase: str = "call") -> list[dict[str, Any]]:
    records = caplog.get_records(phase)
    told = [record.msg for record in records if isinstance(record.msg, dict)]
    return [line for line in told if line["event"] == "endpoint changed"]


def failed(target: Endpoint) -> Delivery:
    publish_event()
    Delivery.objects.all().fail(error="HTTP 500")
    return Delivery.objects.get()


USE_CASES = {
    "changed": lambda it: endpoints.update(it, by=ADA, description="new"),
    "disabled": lambda it: repairs.disable(it, by=ADA),
    "secret rotated": lambda it: repairs.rotate(it, overlap=timedelta(0), by=ADA),
    "secret shown": lambda it: repairs.show_secret(it, by=ADA),
    "resent": lambda it: resending.resend(failed(it), by=ADA),
    "resent failed": lambda it: resending.resend_since(
        failed(it).endpoint,
        Selection.FAILED,
        since=timezone.now() - timedelta(1),
        by=ADA,
    ),
    "deleted": lambda it: endpoints.delete(it, by=ADA),
}


@pytest.mark.parametrize("action", USE_CASES)
def test_each_use_case_is_one_line_with_who_and_what(target, caplog, action):
    USE_CASES[action](target)
    [line] = lines(caplog)
    assert (line["action"], line["endpoint"]) == (action, target.public_id)
    assert (line["by"], line["actor"]) == ("owner", "ada")
    assert line["timestamp"]


def test_no_line_holds_a_secret_or_a_path(target, caplog):
    [created] = lines(caplog, "setup")
    assert (created["action"], created["host"]) == ("created", "93.184.216.34")
    secret = repairs.rotate(target, by=ADA).secret
    endpoints.set_custom_headers(target, {"Authorization": "Bearer abc"}, by=ADA)
    text = f"{created}{lines(caplog)}"
    for hidden in (secret, "secret-path", "Bearer abc"):
        assert hidden not in text


def test_what_is_rolled_back_or_changes_nothing_is_not_told(target, caplog):
    endpoints.update(target, by=ADA, url=URL)
    with transaction.atomic():
        repairs.disable(target, by=ADA)
        transaction.set_rollback(True)
    assert lines(caplog) == []

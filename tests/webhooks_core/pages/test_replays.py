"""Replays: counted first, then started, watched and cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.models import Delivery, ReplayJob
from webhooks_core.owners import replay_jobs, replays

pytestmark = pytest.mark.django_db(transaction=True)
DAY = {"since": f"{timezone.now() - timedelta(days=1):%Y-%m-%dT%H:%M:%S}"}


def path_of(endpoint) -> str:
    return f"/endpoints/{endpoint.public_id}/replay"


def failed(person, endpoint, count: int = 3) -> list[Delivery]:
    rows = [person.delivery(endpoint) for _ in range(count)]
    for row in rows:
        replays.cancel(row, by=person.by)
    return rows


def query(**fields) -> str:
    return "?" + "&".join(f"{name}={value}" for name, value in fields.items())


def test_what_failed_is_counted_and_then_sent(ada):
    with receiver(204) as server:
        endpoint = ada.endpoint(server.url)
        failed(ada, endpoint)
        with nothing_changes():
            page = ada.page(path_of(endpoint) + query(kind="failed", **DAY))
        assert "3 events would be sent" in page
        assert "failed with cancelled by the owner" in page
        started = ada.post(path_of(endpoint), kind="failed", **DAY)
        assert "The replay has started." in started
        assert "0 of 3 are sent" in started
        dispatch()
        assert len(server.requests) == 3
    job = ReplayJob.objects.get()
    address = f"/endpoints/{endpoint.public_id}/replays/{job.public_id}"
    assert "3 were sent" in ada.page(address) or "3 of 3 are sent" in ada.page(address)
    assert "3 of 3 sent" in ada.page(path_of(endpoint))


def test_what_was_skipped_is_offered_first(ada):
    endpoint = ada.endpoint()
    endpoints.update(endpoint, active=False)
    ada.publish()
    endpoints.update(endpoint, active=True)
    page = ada.page(path_of(endpoint))
    assert 'value="missing" checked' in page
    counted = ada.page(path_of(endpoint) + query(kind="missing", **DAY))
    assert "1 event would be sent" in counted
    ada.post(path_of(endpoint), kind="missing", **DAY)
    replay_jobs.continue_running()
    assert Delivery.objects.get().trigger == "replay"


def test_a_replay_is_cancelled_once_and_only_one_runs(ada):
    endpoint = ada.endpoint()
    failed(ada, endpoint)
    ada.post(path_of(endpoint), kind="failed", **DAY)
    running = ada.post(path_of(endpoint), kind="failed", **DAY)
    assert "Another replay to this endpoint is running." in running
    address = (
        f"/endpoints/{endpoint.public_id}/replays/{ReplayJob.objects.get().public_id}"
    )
    assert "Cancelled: what is queued" in ada.post(f"{address}/cancel")
    assert "Cancelled: 0 of 3 were sent" in ada.page(address)
    assert "Nothing was changed: it has ended." in ada.post(f"{address}/cancel")


def test_nothing_is_replayed_to_a_disabled_endpoint(ada):
    endpoint = ada.endpoint()
    failed(ada, endpoint)
    endpoints.update(endpoint, active=False)
    page = ada.post(path_of(endpoint), kind="failed", **DAY)
    assert "Nothing was sent: the endpoint is disabled or inactive." in page
    assert not ReplayJob.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"since": "yesterday"},
        {"since": ""},
        {"since": "2026-11-25T10:00", "kind": "no.such"},
        {"since": "2026-11-25T10:00", "until": "x"},
        {"since": "2026-11-25T10:00", "event_types": "no.such"},
        {"since": "\x00"},
        {"since": "0000-00-00T00:00"},
        {"since": "9999-12-31T23:59:59.999999-23:59"},
    ],
)
def test_a_fault_of_the_form_is_named_and_starts_nothing(ada, fields):
    endpoint = ada.endpoint()
    form = {"kind": "failed"} | fields
    address = path_of(endpoint)
    assert 'role="alert"' in ada.post(address, 400, **form)
    response = ada.browser.get(f"/accounts/webhooks{address}", form)
    assert response.status_code == 400
    assert not ReplayJob.objects.exists()

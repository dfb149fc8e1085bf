"""Transactions that lock several endpoints lock them in one order, so that none deadlocks."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from tests.receiver import receiver
from tests.running import PATIENCE_S
from webhooks_core import endpoints, publishing
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import results
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.upkeep.removal import end_owner, remove_owner

OWNER: dict[str, Any] = {"profile": "recording", "owner": "1"}


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer")
@pytest.mark.django_db(transaction=True)
def test_a_removal_beside_results_of_two_endpoints_succeeds(monkeypatch):
    record_results, count_run = results.record_results, results._count_run
    ended, counting = [], threading.Event()

    def together(lease, some, *, now):
        ended.extend(some)
        if len(ended) == 2:
            return record_results(lease, ended, now=now)
        return results.Recorded([], [])

    def slow(pk, run, now):
        counting.set()  # the one that succeeded is updated, the other not yet
        time.sleep(0.5)
        count_run(pk, run, now)

    def dispatch():
        try:
            engine.dispatch(linger=timedelta(0), run_s=PATIENCE_S)
        finally:
            connection.close()

    monkeypatch.setattr(results, "record_results", together)
    monkeypatch.setattr(results, "_count_run", slow)
    with receiver(500) as failing, receiver(200) as working:
        for url in (failing.url, working.url):
            endpoints.create(**OWNER, url=url, event_types=["summary.completed"])
        publishing.publish(**OWNER, event_type="summary.completed", data={})
        dispatcher = threading.Thread(target=dispatch)
        dispatcher.start()
        assert counting.wait(PATIENCE_S)
        end_owner(**OWNER)
        remove_owner(**OWNER)
        dispatcher.join()
    assert not Endpoint.objects.exists()
    assert not Delivery.objects.exists()

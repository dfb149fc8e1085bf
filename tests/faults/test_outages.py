"""Outages of Redis, PostgreSQL and the disk."""

import os
import signal
import time

import pytest

from tests.faults.rigged import ANSWERED, BEFORE_CLAIM, WRITING
from tests.faults.site import DatabaseAwayError
from tests.running import until
from webhooks_core.worker.cluster import PATIENCE_S

EVENTS, REDIS_AWAY_S = 30, 2


def refuses(ledger) -> bool:
    """Publish; return True if the database refuses."""
    try:
        ledger.publish(EVENTS)
    except DatabaseAwayError:
        return True
    return False


def once_each(ledger) -> bool:
    """Return True if each event arrived once, or a lease expired on a busy machine.

    What the expired lease had claimed may arrive twice.
    """
    ledger.note_interrupted()
    has_interruption = "interrupted" in ledger.look()["outcomes"]
    return has_interruption or set(ledger.received.values()) == {1}


# ── Redis ───────────────────────────────────────────────────────────────────────────


def test_a_flush_of_redis_loses_a_task_and_no_event(
    postgres_site, redis_server, open_ledger
):
    site = postgres_site
    with open_ledger(site, "Redis flushed") as ledger, redis_server.client as redis:
        site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        with site.frozen():
            until(lambda: redis.info()["blocked_clients"] == 0, "no listener")
            # No task is queued while the lease of the resident dispatcher lasts.
            site.watcher.call("expire_leases")
            until(
                lambda: ledger.publish(1) or redis.keys("django_q:*:q"), "a queued task"
            )
            redis.flushall()
            assert len(ledger.received) == 5 * len(ledger.receivers)
        # The task is lost. Events go on being published: a later one queues another.
        until(
            lambda: (
                ledger.publish(1) or len(ledger.received) > 5 * len(ledger.receivers)
            ),
            "another queued task",
        )
        ledger.wait_until_delivered()
        assert once_each(ledger)


def test_events_are_published_and_delivered_again_after_redis_was_gone(
    postgres_site, redis_server, open_ledger
):
    site = postgres_site
    with open_ledger(site, "Redis gone", delay=0.02) as ledger:
        cluster = site.cluster()
        ledger.publish(EVENTS)
        redis_server.kill()
        end = time.monotonic() + REDIS_AWAY_S
        until(
            lambda: ledger.publish(1) or time.monotonic() > end,
            "the end of the outage",
            seconds=REDIS_AWAY_S + 60,
        )
        redis_server.start()
        site.watcher.call("sweep_soon")
        ledger.wait_until_delivered()
        assert site.cluster() is cluster
        assert once_each(ledger)


def test_a_cluster_that_has_worked_waits_for_redis_as_long_as_it_takes(
    postgres_site, redis_server, open_ledger
):
    site = postgres_site
    with open_ledger(site, "Redis gone longer than the cluster's patience") as ledger:
        cluster = site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        redis_server.kill()
        ledger.publish(EVENTS)
        killed_at = time.monotonic()
        # Its pushers would take a minute to give up.
        os.kill(cluster.children()[0], signal.SIGKILL)
        until(
            lambda: time.monotonic() > killed_at + PATIENCE_S,
            "the end of the patience",
        )
        cluster.wait_for("the cluster ended with 1")
        redis_server.start()
        ledger.wait_until_delivered()
        assert site.cluster() is cluster
        assert once_each(ledger)


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────


# In the transactions of a claim and of results, and in none.
@pytest.mark.parametrize("point", [BEFORE_CLAIM, WRITING, ANSWERED])
def test_an_immediate_stop_of_postgresql_repeats_nothing(
    postgres_site, postgres_server, open_ledger, point
):
    site = postgres_site
    with open_ledger(site, f"PostgreSQL stopped immediate {point}") as ledger:
        cluster = site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        site.arm(point)
        ledger.publish(EVENTS)
        site.halted()
        ledger.note_in_flight()
        postgres_server.stop_at_once()
        try:
            assert refuses(ledger)
            site.go_on()
            cluster.wait_for("database unavailable")
        finally:
            postgres_server.start()
        ledger.publish(1)
        ledger.wait_until_delivered()
        assert site.cluster() is cluster
        assert once_each(ledger)


# ── The disk ────────────────────────────────────────────────────────────────────────


def test_a_full_disk_refuses_what_is_published_whole_and_keeps_what_was(
    small_site, small_disk, open_ledger
):
    with open_ledger(small_site, "disk full while publishing") as ledger:
        small_site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        small_disk.fill()
        until(lambda: refuses(ledger), "a full disk")
        small_disk.free()
        ledger.publish(1)
        ledger.wait_until_delivered()
        assert set(ledger.look()["events"]) == ledger.acknowledged
        assert once_each(ledger)


def test_results_outlive_a_full_disk(small_site, small_disk, open_ledger):
    with open_ledger(small_site, "disk full while delivering") as ledger:
        cluster = small_site.cluster()
        small_site.arm(ANSWERED)
        with ledger.publishing(EVENTS):
            small_site.halted()
        ledger.note_in_flight()
        assert ledger.in_flight & ledger.received.keys()
        small_disk.fill()
        small_site.go_on()
        cluster.wait_for("database unavailable")
        small_disk.free()
        ledger.wait_until_delivered()
        assert small_site.cluster() is cluster
        assert once_each(ledger)

"""What everything leans on goes away and comes back: Redis, PostgreSQL, the disk."""

from __future__ import annotations

import os
import sys
import time

import pytest

from tests.faults.rigged import ANSWERED, POINTS
from tests.faults.site import DatabaseAwayError
from tests.running import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 30
# `FAULTS_REDIS_AWAY_S=60 pytest tests/faults` takes Redis away for the minute of the record.
REDIS_AWAY_S = float(os.environ.get("FAULTS_REDIS_AWAY_S", "2"))


def refuses(books) -> bool:
    """Publish; tell whether the database refused."""
    try:
        books.publish(EVENTS)
    except DatabaseAwayError:
        return True
    return False


def once_each(books) -> bool:
    """Tell whether each event arrived once, unless a busy machine let a lease of 15 s run out."""
    buried = "interrupted" in books.look()["outcomes"]
    return buried or set(books.received.values()) == {1}


# ── Redis ───────────────────────────────────────────────────────────────────────────


def test_a_flush_of_redis_loses_a_call_and_no_event(postgres_site, redis_server, books):
    site = postgres_site
    with books(site, "Redis flushed") as it, redis_server.client as redis:
        site.cluster()
        it.publish(5)
        it.wait_until_delivered()
        with site.frozen():
            until(lambda: redis.info()["blocked_clients"] == 0, "nobody to listen")
            # Nobody calls while the lease of the shift that waits lasts.
            until(lambda: it.publish(1) or redis.keys("django_q:*:q"), "a call")
            redis.flushall()
            assert len(it.received) == 5 * len(it.receivers)
        # The call is gone for good. Events go on being published: a later one calls again.
        until(
            lambda: it.publish(1) or len(it.received) > 5 * len(it.receivers),
            "another call",
        )
        it.wait_until_delivered()
        assert once_each(it)


def test_events_are_published_and_delivered_again_after_redis_was_gone(
    postgres_site, redis_server, books
):
    site = postgres_site
    with books(site, f"Redis gone for {REDIS_AWAY_S:g} s", delay=0.02) as it:
        cluster = site.cluster()
        it.publish(EVENTS)
        redis_server.kill()
        end = time.monotonic() + REDIS_AWAY_S
        until(
            lambda: it.publish(1) or time.monotonic() > end,
            "the end of the outage",
            seconds=REDIS_AWAY_S + 60,
        )
        redis_server.start()
        site.watcher.tell("sweep_soon")
        it.wait_until_delivered()
        assert site.cluster() is cluster
        assert once_each(it)


def test_a_cluster_that_has_worked_waits_for_redis_as_long_as_it_takes(
    postgres_site, redis_server, books
):
    """More failed starts than a cluster that never worked would make."""
    site = postgres_site
    site.stop()
    with books(site, "Redis gone longer than the cluster's patience") as it:
        cluster = site.cluster("qcluster", "--unresponsive-after", "3")
        it.publish(5)
        it.wait_until_delivered()
        redis_server.kill()
        it.publish(EVENTS)
        until(
            lambda: cluster.output.count("the sentinel ended with 1") > 4,
            "five failed starts",
            seconds=90,
        )
        redis_server.start()
        it.wait_until_delivered()
        assert site.cluster() is cluster
        site.stop()
        assert once_each(it)


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("point", POINTS)
def test_an_immediate_stop_of_postgresql_repeats_nothing(
    postgres_site, postgres_server, books, point
):
    site = postgres_site
    with books(site, f"PostgreSQL stopped immediate {point}") as it:
        cluster = site.cluster()
        it.publish(5)
        it.wait_until_delivered()
        site.arm(point)
        it.publish(EVENTS)
        site.halted()
        it.note_in_flight()
        postgres_server.stop_at_once()
        try:
            assert refuses(it)
            site.go_on()
            cluster.wait_for("database unavailable")
        finally:
            postgres_server.start()
        it.publish(1)
        it.wait_until_delivered()
        assert site.cluster() is cluster
        assert once_each(it)


# ── The disk ────────────────────────────────────────────────────────────────────────


def test_a_full_disk_refuses_what_is_published_whole_and_keeps_what_was(
    small_site, small_disk, books
):
    with books(small_site, "disk full while publishing") as it:
        small_site.cluster()
        it.publish(5)
        it.wait_until_delivered()
        small_disk.fill()
        until(lambda: refuses(it), "a full disk")
        small_disk.free()
        it.publish(1)
        it.wait_until_delivered()
        assert set(it.look()["events"]) == it.acknowledged
        assert once_each(it)


def test_answers_outlive_a_full_disk(small_site, small_disk, books):
    with books(small_site, "disk full while delivering") as it:
        cluster = small_site.cluster()
        small_site.arm(ANSWERED)
        with it.publishing(EVENTS):
            small_site.halted()
        it.note_in_flight()
        assert it.in_flight & it.received.keys()
        small_disk.fill()
        small_site.go_on()
        cluster.wait_for("database unavailable")
        small_disk.free()
        it.wait_until_delivered()
        assert small_site.cluster() is cluster
        assert once_each(it)

"""Heartbeats among the tasks of a broker."""

from __future__ import annotations

import pydoc
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_q.signing import SignedPackage

from tests.webhooks_core.factories import DispatcherLeaseFactory
from webhooks_core.dispatch import leases
from webhooks_core.worker import notify, shutdown
from webhooks_core.worker.cluster import heartbeat
from webhooks_core.worker.cluster.heartbeat import HeartbeatBroker

pytestmark = pytest.mark.django_db


class FixedBroker:
    """A broker that hands out the tasks that it was given."""

    list_key = "signpost"

    def __init__(self, tasks=()) -> None:
        self.tasks = list(tasks)
        self.acknowledged: list[int] = []

    def acknowledge(self, ack_id: int) -> None:
        self.acknowledged.append(ack_id)

    def dequeue(self):
        return self.tasks or None


def run(task):
    """Do what a worker does with a package."""
    function = pydoc.locate(SignedPackage.loads(task[1])["func"])
    assert callable(function)
    function()


def test_a_heartbeat_follows_the_tasks_and_does_not_change_them():
    first, second, beat = HeartbeatBroker(
        FixedBroker([(1, "a"), (2, "b")]), every_s=0, lost_after_s=60
    ).dequeue()
    assert (first, second) == ((1, "a"), (2, "b"))
    before = heartbeat.last_heartbeat_at()
    run(beat)
    assert heartbeat.last_heartbeat_at() > before


def test_the_next_heartbeat_follows_only_when_the_last_one_has_run():
    broker = HeartbeatBroker(FixedBroker(), every_s=0, lost_after_s=60)
    [beat] = broker.dequeue()
    assert broker.dequeue() == []
    run(beat)
    assert len(broker.dequeue()) == 1


def test_a_lost_heartbeat_is_sent_again():
    broker = HeartbeatBroker(FixedBroker(), every_s=60, lost_after_s=0)
    assert [len(broker.dequeue()) for _ in range(2)] == [1, 1]


def test_heartbeats_have_a_minimum_interval():
    broker = HeartbeatBroker(FixedBroker(), every_s=60, lost_after_s=60)
    [beat] = broker.dequeue()
    run(beat)
    assert broker.dequeue() == []


def test_heartbeats_continue_while_the_queue_is_unavailable(monkeypatch):
    class Unavailable(FixedBroker):
        def dequeue(self):
            raise ConnectionError

    monkeypatch.setattr(heartbeat, "PAUSE_S", 0.0)
    broker = HeartbeatBroker(Unavailable(), every_s=0, lost_after_s=60)
    [beat] = broker.dequeue()
    run(beat)
    assert len(broker.dequeue()) == 1
    monkeypatch.setattr(heartbeat, "FAILING_S", -1.0)
    with pytest.raises(ConnectionError):  # a new process may have more success
        broker.dequeue()


def test_other_attributes_are_those_of_the_broker():
    assert (
        HeartbeatBroker(FixedBroker(), every_s=0, lost_after_s=0).list_key == "signpost"
    )


def test_a_heartbeat_wakes_a_dispatcher_if_none_is_live(calls):
    lease = DispatcherLeaseFactory.create()
    heartbeat.heartbeat()
    assert calls == []
    leases.release_slot(lease)
    heartbeat.heartbeat()
    assert calls == ["webhooks_core.tasks.dispatch"]


def test_a_heartbeat_wakes_no_dispatcher_while_the_cluster_stops(calls, monkeypatch):
    monkeypatch.setattr(shutdown, "is_set", lambda: True)
    heartbeat.heartbeat()
    assert calls == []


def test_a_heartbeat_is_stored_while_the_database_is_unavailable(monkeypatch):
    def fail() -> bool:
        raise OperationalError

    monkeypatch.setattr(notify, "wake_dispatcher", fail)
    before = heartbeat.last_heartbeat_at()
    heartbeat.heartbeat()
    assert heartbeat.last_heartbeat_at() > before


class TestHintsOfOneMoment:
    def hint(
        self, *, function="webhooks_core.tasks.dispatch", seconds_ago=0.0, **fields
    ):
        started = timezone.now() - timedelta(seconds=seconds_ago)
        task = {"func": function, "started": started, **fields}
        return SignedPackage.dumps(task)

    def broker(self, *packages: str) -> HeartbeatBroker:
        tasks = list(enumerate(packages))
        return HeartbeatBroker(FixedBroker(tasks), every_s=60, lost_after_s=60)

    def handed_out(self, broker: HeartbeatBroker) -> list[int]:
        return [ack_id for ack_id, _ in broker.dequeue() if ack_id is not None]

    def test_the_first_one_is_handed_out_and_the_others_are_acknowledged(self):
        broker = self.broker(*[self.hint(seconds_ago=60)] * 3)
        assert self.handed_out(broker) == [0]
        assert broker.acknowledged == [1, 2]

    def test_one_that_was_queued_after_the_last_one_is_handed_out(self):
        ahead = self.hint(seconds_ago=-60)
        assert self.handed_out(self.broker(self.hint(), ahead)) == [0, 1]

    def test_other_tasks_are_handed_out(self):
        old = self.hint(seconds_ago=60)
        other = self.hint(function="shop.tasks.bill", seconds_ago=60)
        large = self.hint(seconds_ago=60, args=(list(range(5000)),))
        packages = (old, other, large, "not signed", old)
        assert self.handed_out(self.broker(*packages)) == [0, 1, 2, 3]

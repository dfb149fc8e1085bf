"""Heartbeats among the tasks of a broker."""

from __future__ import annotations

import os
import pydoc
import time

import pytest
from django.db import OperationalError
from django_q.conf import Conf
from django_q.signing import SignedPackage

from tests.webhooks_core.factories import DispatcherLeaseFactory
from webhooks_core.dispatch import leases
from webhooks_core.worker import heartbeat, notify, shutdown
from webhooks_core.worker.heartbeat import HeartbeatBroker

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


def beats(broker: HeartbeatBroker) -> int:
    return sum(ack_id == heartbeat.ACK_ID for ack_id, _ in broker.dequeue())


def test_a_heartbeat_follows_the_tasks_and_does_not_change_them(calls):
    stock = FixedBroker([(1, "a"), (2, "b")])
    broker = HeartbeatBroker(stock, every_s=0, lost_after_s=60)
    first, second, (ack_id, package) = broker.dequeue()
    assert (first, second) == ((1, "a"), (2, "b"))
    function = pydoc.locate(SignedPackage.loads(package)["func"])
    assert callable(function)
    function()
    assert calls == ["webhooks_core.tasks.dispatch"]
    before = heartbeat.acknowledged.at
    for each in (1, ack_id):
        broker.acknowledge(each)
    assert heartbeat.acknowledged.at > before
    assert stock.acknowledged == [1]


def test_the_next_heartbeat_follows_only_when_the_last_one_was_acknowledged():
    broker = HeartbeatBroker(FixedBroker(), every_s=0, lost_after_s=60)
    assert [beats(broker), beats(broker)] == [1, 0]
    broker.acknowledge(heartbeat.ACK_ID)
    assert beats(broker) == 1


def test_a_lost_heartbeat_is_sent_again():
    broker = HeartbeatBroker(FixedBroker(), every_s=60, lost_after_s=0)
    assert [beats(broker), beats(broker)] == [1, 1]


def test_heartbeats_have_a_minimum_interval():
    broker = HeartbeatBroker(FixedBroker(), every_s=60, lost_after_s=60)
    assert beats(broker) == 1
    broker.acknowledge(heartbeat.ACK_ID)
    assert beats(broker) == 0


def test_heartbeats_continue_while_the_queue_is_unavailable(monkeypatch):
    class Unavailable(FixedBroker):
        def dequeue(self):
            raise ConnectionError

    monkeypatch.setattr(heartbeat, "PAUSE_S", 0.0)
    broker = HeartbeatBroker(Unavailable(), every_s=0, lost_after_s=60)
    assert beats(broker) == 1


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


def test_a_heartbeat_succeeds_while_the_database_is_unavailable(monkeypatch):
    def fail() -> bool:
        raise OperationalError

    monkeypatch.setattr(notify, "wake_dispatcher", fail)
    heartbeat.heartbeat()


def test_tasks_that_run_are_counted_while_their_process_lives_and_may_run_them(
    monkeypatch,
):
    running = heartbeat.RunningTasks()
    running.begin()
    assert running.count() == 1
    if not (child := os.fork()):
        running.begin()
        os._exit(0)  # as when it is killed
    os.waitpid(child, 0)
    assert running.count() == 1
    running.end()
    assert running.count() == 0
    monkeypatch.setattr(Conf, "TIMEOUT", -1)
    running.begin()
    assert running.count() == 0


def test_silence_is_the_time_without_a_change_in_which_the_observer_ran(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shared = heartbeat.SharedTime()
    silence = heartbeat.Silence(shared)
    for step, is_excused, expected in [
        (0.5, False, 0.5),
        (0.5, True, 0.5),  # every worker is busy
        (3600, False, 1.5),  # the machine was suspended
        (0.5, False, 2.0),
    ]:
        now += step
        assert silence.update(is_excused=is_excused) == expected
    shared.touch()
    assert silence.update() == 0

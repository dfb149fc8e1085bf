from __future__ import annotations

import pydoc

import pytest
from django_q.signing import SignedPackage

from webhooks_core.worker.cluster import heartbeat
from webhooks_core.worker.cluster.heartbeat import HeartbeatBroker


class Hands:
    """A broker that hands out what it was given."""

    list_key = "signpost"

    def __init__(self, tasks=()) -> None:
        self.tasks = list(tasks)

    def dequeue(self):
        return self.tasks or None


def run(task):
    """Do what a worker does with a package."""
    function = pydoc.locate(SignedPackage.loads(task[1])["func"])
    assert callable(function)
    function()


def test_a_beat_follows_the_tasks_and_leaves_them_alone():
    first, second, beaten = HeartbeatBroker(
        Hands([(1, "a"), (2, "b")]), every_s=0, lost_after_s=60
    ).dequeue()
    assert (first, second) == ((1, "a"), (2, "b"))
    before = heartbeat.last_heartbeat_at()
    run(beaten)
    assert heartbeat.last_heartbeat_at() > before


def test_the_next_beat_follows_only_when_the_one_before_was_heard():
    broker = HeartbeatBroker(Hands(), every_s=0, lost_after_s=60)
    [beaten] = broker.dequeue()
    assert broker.dequeue() == []
    run(beaten)
    assert len(broker.dequeue()) == 1


def test_a_beat_that_was_lost_is_sent_again():
    broker = HeartbeatBroker(Hands(), every_s=60, lost_after_s=0)
    assert [len(broker.dequeue()) for _ in range(2)] == [1, 1]


def test_beats_keep_their_distance():
    broker = HeartbeatBroker(Hands(), every_s=60, lost_after_s=60)
    [beaten] = broker.dequeue()
    run(beaten)
    assert broker.dequeue() == []


def test_a_queue_that_is_away_makes_nobody_deaf(monkeypatch):
    class Away(Hands):
        def dequeue(self):
            raise ConnectionError

    monkeypatch.setattr(heartbeat, "PAUSE_S", 0.0)
    broker = HeartbeatBroker(Away(), every_s=0, lost_after_s=60)
    [beaten] = broker.dequeue()
    run(beaten)
    assert len(broker.dequeue()) == 1
    monkeypatch.setattr(heartbeat, "FAILING_S", -1.0)
    with pytest.raises(ConnectionError):  # a process made anew may fare better
        broker.dequeue()


def test_all_else_is_the_brokers_own():
    assert HeartbeatBroker(Hands(), every_s=0, lost_after_s=0).list_key == "signpost"

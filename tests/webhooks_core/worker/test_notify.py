"""Calling the drain: once for a burst, not while one is at work, and never at a cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from django_q import tasks
from django_q.brokers.redis_broker import Redis as RedisBroker
from django_q.conf import Conf

from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.dispatch import leases
from webhooks_core.models import DispatcherLease, EndpointQueue, EngineState
from webhooks_core.worker import notify

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

URL = "http://127.0.0.1:9/hook"


def later(seconds: float):
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds))


def test_a_burst_calls_once(calls):
    EndpointFactory.create(url=URL)
    for _ in range(50):
        publish_event()
    assert len(calls) == 1


def test_a_call_that_nobody_answered_is_made_again(calls):
    EndpointFactory.create(url=URL)
    publish_event()
    with later(4):
        publish_event()
    assert len(calls) == 1
    with later(6):
        publish_event()
    assert len(calls) == 2


def test_nobody_is_called_while_a_shift_is_at_work(calls):
    EndpointFactory.create(url=URL)
    assert leases.acquire()
    publish_event()
    assert calls == []


@pytest.mark.parametrize("why", ["dead", "leaving"])
def test_a_shift_that_takes_no_new_work_keeps_nobody_from_calling(calls, why):
    EndpointFactory.create(url=URL)
    shift = leases.acquire()
    assert shift is not None
    if why == "leaving":
        leases.release_slot(shift)
    else:
        DispatcherLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    publish_event()
    assert len(calls) == 1


def test_the_start_of_a_shift_answers_the_call(calls):
    EndpointFactory.create(url=URL)
    publish_event()
    shift = leases.acquire()
    assert shift is not None
    leases.release(shift, attempts=0)
    publish_event()
    assert len(calls) == 2


def test_a_call_from_before_the_clock_was_set_back_does_not_silence_the_bell(calls):
    EndpointFactory.create(url=URL)
    with later(3600):
        publish_event()
    publish_event()
    assert len(calls) == 2
    soon = timezone.now() + timedelta(seconds=5)
    assert EngineState.objects.filter(woken_at__lt=soon).exists()


def test_work_that_is_due_earlier_moves_the_lane_and_later_work_does_not():
    target = EndpointFactory.create(url=URL)
    soon, late = timezone.now(), timezone.now() + timedelta(hours=1)
    for at, expected in [(late, late), (soon, soon), (late, soon)]:
        notify.notify([target.pk], at=at)
        assert EndpointQueue.objects.get().next_due_at == expected


def test_a_flushed_database_has_a_bell_again_with_the_first_call(calls):
    EngineState.objects.all().delete()
    EndpointFactory.create(url=URL)
    publish_event()
    assert len(calls) == 1
    publish_event()
    assert len(calls) == 1


class TestBroker:
    @pytest.fixture(autouse=True)
    def real(self, monkeypatch, calls):
        """The real way to the broker, which `calls` replaces elsewhere."""
        notify._broker.cache_clear()
        monkeypatch.undo()
        yield
        notify._broker.cache_clear()

    def test_one_that_is_away_fails_nobody_and_is_asked_once(self, monkeypatch):
        class Away:
            asked = 0
            connection = None

            def enqueue(self, _: object) -> None:
                Away.asked += 1
                raise ConnectionError("redis://user:password@host is away")

        monkeypatch.setattr(notify, "get_broker", Away)
        monkeypatch.setattr(tasks, "async_task", lambda _, broker: broker.enqueue(None))
        assert notify.wake_dispatcher() is False
        assert notify.wake_dispatcher() is False  # not again within the next seconds
        assert Away.asked == 1
        with later(6):
            assert notify.wake_dispatcher() is False
        assert Away.asked == 2

    def test_its_failure_is_logged_without_its_address(self, monkeypatch, caplog):
        def away(*_: object, **__: object) -> None:
            raise ConnectionError("redis://user:password@host is away")

        monkeypatch.setattr(tasks, "async_task", away)
        assert notify.enqueue("x") is False
        assert "password" not in caplog.text

    @pytest.mark.parametrize("is_url", [True, False])
    def test_a_redis_that_refuses_is_given_up_at_once(
        self, monkeypatch, free_port, is_url
    ):
        monkeypatch.setattr(notify, "get_broker", lambda: RedisBroker("signpost"))
        url = f"redis://127.0.0.1:{free_port}/0?socket_timeout=4"
        options = {"host": "127.0.0.1", "port": free_port, "socket_timeout": 4}
        monkeypatch.setattr(Conf, "REDIS", url if is_url else options)
        pool = notify._broker().connection.connection_pool
        assert pool.connection_kwargs["socket_connect_timeout"] <= 0.5
        assert pool.connection_kwargs["socket_timeout"] <= 0.5
        connection = pool.make_connection()
        assert connection.retry.get_retries() == 0
        assert notify.enqueue("webhooks_core.tasks.dispatch") is False

"""Waking a dispatcher: once for a burst, not while one is live, and never at the caller's cost."""

from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from django_q import tasks
from django_q.brokers import orm
from django_q.brokers.redis_broker import Redis as RedisBroker
from django_q.conf import Conf
from django_q.models import OrmQ

from tests.clock import later
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases, notify
from webhooks_core.models import DispatcherLease, EndpointQueue, EngineState

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once", "clock")


def test_a_wake_up_that_no_dispatcher_followed_is_repeated(calls):
    EndpointFactory.create()
    publish_event()
    with later(seconds=4):
        publish_event()
    assert len(calls) == 1
    with later(seconds=6):
        publish_event()
    assert len(calls) == 2


def test_a_dead_dispatcher_does_not_prevent_a_wake_up(calls):
    EndpointFactory.create()
    lease = leases.acquire()
    assert lease is not None
    DispatcherLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    publish_event()
    assert len(calls) == 1


def test_the_start_of_a_dispatcher_ends_the_wake_up(calls):
    EndpointFactory.create()
    publish_event()
    lease = leases.acquire()
    assert lease is not None
    leases.release(lease)
    publish_event()
    assert len(calls) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("surroundings", [transaction.atomic, nullcontext])
def test_earlier_work_moves_the_due_time_of_a_queue_and_later_work_does_not(
    surroundings,
):
    target, other = EndpointFactory.create(), EndpointFactory.create()
    soon, late = timezone.now(), timezone.now() + timedelta(hours=1)
    queue = EndpointQueue.objects.get(endpoint=target)
    with surroundings():
        for at, expected in [(late, late), (soon, soon), (late, soon), (None, soon)]:
            notify.notify([target.pk], at=at)
            queue.refresh_from_db()
            assert queue.next_due_at == expected
    assert EndpointQueue.objects.get(endpoint=other).next_due_at is None


@pytest.mark.django_db(transaction=True)
def test_work_without_a_time_is_due_now():
    target = EndpointFactory.create()
    before = clock.measure()
    notify.notify([target.pk])
    marked = EndpointQueue.objects.get().next_due_at
    assert marked is not None
    assert before <= marked < before + timedelta(hours=1)


def test_a_flushed_database_has_a_state_again_with_the_first_wake_up(calls):
    EngineState.objects.all().delete()
    EndpointFactory.create()
    publish_event()
    assert len(calls) == 1
    publish_event()
    assert len(calls) == 1


class TestBroker:
    @pytest.fixture(autouse=True)
    def real(self, monkeypatch, calls):
        """The real broker, which `calls` replaces elsewhere."""
        notify._broker.cache_clear()
        monkeypatch.undo()
        yield
        notify._broker.cache_clear()

    def test_an_unavailable_one_fails_no_caller_and_is_asked_once(self, monkeypatch):
        class Unavailable:
            asked = 0
            connection = None

            def queue_size(self) -> int:
                Unavailable.asked += 1
                raise ConnectionError("redis://user:password@host is unavailable")

        monkeypatch.setattr(notify, "get_broker", Unavailable)
        assert notify.wake_dispatcher() is False
        assert notify.wake_dispatcher() is False  # not again within the next seconds
        assert Unavailable.asked == 1
        with later(seconds=6):
            assert notify.wake_dispatcher() is False
        assert Unavailable.asked == 2

    def test_it_collects_no_more_than_a_number_of_hints(self, monkeypatch):
        monkeypatch.setattr(notify, "get_broker", lambda: orm.ORM("signpost"))
        monkeypatch.setattr(notify, "MAX_QUEUED", 2)
        assert [notify.enqueue("x") for _ in range(3)] == [True, True, False]
        assert OrmQ.objects.count() == 2

    def test_its_failure_is_logged_without_its_address(self, monkeypatch, caplog):
        def fail(*_: object, **__: object) -> None:
            raise ConnectionError("redis://user:password@host is unavailable")

        monkeypatch.setattr(tasks, "async_task", fail)
        assert notify.enqueue("x") is False
        assert "password" not in caplog.text

    @pytest.mark.parametrize("is_url", [True, False])
    def test_a_redis_that_refuses_fails_at_once(self, monkeypatch, free_port, is_url):
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

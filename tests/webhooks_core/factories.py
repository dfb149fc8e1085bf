"""Rows of the engine for tests, of the profile `plain`."""

from typing import Any

from django.utils import timezone
from factory.declarations import LazyFunction, Sequence, SubFactory
from factory.django import DjangoModelFactory

from webhooks_core import endpoints
from webhooks_core.dispatch.leases import LEASE_DURATION
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint, Event
from webhooks_core.publishing import publish


class EndpointFactory(DjangoModelFactory[Endpoint]):
    """Created by the use case: with a queue and a secret, within the quota."""

    class Meta:
        model = Endpoint

    profile = "plain"
    owner = "alice"
    url = "http://127.0.0.1:9/"
    event_types = ("thing.made",)

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> Endpoint:  # noqa: ARG003
        return endpoints.create(**kwargs).endpoint


class EventFactory(DjangoModelFactory[Event]):
    """The row alone; `publish_event` also creates its deliveries."""

    class Meta:
        model = Event

    public_id = Sequence(lambda n: f"evt_{n}")
    profile = "plain"
    owner = "alice"
    type = "thing.made"
    size = 2
    body = b"{}"


class DeliveryFactory(DjangoModelFactory[Delivery]):
    """The row alone: no queue knows that it is due."""

    class Meta:
        model = Delivery

    public_id = Sequence(lambda n: f"dlv_{n}")
    event = SubFactory(EventFactory)
    endpoint = SubFactory(EndpointFactory)
    replay_number = Sequence(int)


class AttemptFactory(DjangoModelFactory[Attempt]):
    class Meta:
        model = Attempt

    delivery = SubFactory(DeliveryFactory)
    number = Sequence(lambda n: n + 1)
    started_at = LazyFunction(timezone.now)
    outcome = "ok"


class DispatcherLeaseFactory(DjangoModelFactory[DispatcherLease]):
    class Meta:
        model = DispatcherLease

    slot = 0
    host = "one"
    pid = 1
    expires_at = LazyFunction(lambda: timezone.now() + LEASE_DURATION)


def publish_event(
    owner: str = "alice", event_type: str = "thing.made", **fields: Any
) -> Event:
    """Publish by the use case: its deliveries and due queues are what tests look at."""
    return publish(
        profile="plain", owner=owner, event_type=event_type, data={"n": 1}, **fields
    )


def publish_events(count: int) -> list[Event]:
    return [publish_event() for _ in range(count)]


def make_deliveries(number: int) -> None:
    """Create deliveries with two attempts each, all of one event for one endpoint."""
    of = {"event": EventFactory.create(), "endpoint": EndpointFactory.create()}
    DeliveryFactory.reset_sequence(0)
    deliveries = DeliveryFactory.build_batch(number, attempts=2, **of)
    Delivery.objects.bulk_create(deliveries)
    Attempt.objects.bulk_create(
        AttemptFactory.build(delivery=delivery, number=n)
        for delivery in deliveries
        for n in (1, 2)
    )

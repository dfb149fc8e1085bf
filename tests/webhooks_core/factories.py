"""Rows of the engine for tests, of the profile `plain`."""

from __future__ import annotations

from typing import Any

from factory.django import DjangoModelFactory

from webhooks_core import endpoints
from webhooks_core.models import Endpoint, Event
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


def publish_event(
    owner: str = "alice", event_type: str = "thing.made", **fields
) -> Event:
    """Publish by the use case: its deliveries and due queues are what tests look at."""
    return publish(
        profile="plain", owner=owner, event_type=event_type, data={"n": 1}, **fields
    )

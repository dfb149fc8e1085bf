"""Short words for what most tests of the engine need."""

from __future__ import annotations

from datetime import timedelta

from webhooks_core import endpoints
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish


def endpoint(url: str, *types: str, owner: str = "alice", **fields) -> Endpoint:
    return endpoints.create(
        profile="plain",
        owner=owner,
        url=url,
        event_types=types or ["thing.made"],
        **fields,
    ).endpoint


def event(owner: str = "alice", event_type: str = "thing.made", **fields) -> Event:
    return publish(
        profile="plain", owner=owner, event_type=event_type, data={"n": 1}, **fields
    )


def only() -> Delivery:
    return Delivery.objects.get()


def dispatch(**options) -> int:
    """Send what is due now; do not wait for what is due later."""
    return engine.dispatch(**{"linger": timedelta(0)} | options)

"""The tables of the engine. The Delivery row is the outbox: a queued task is only a hint."""

from __future__ import annotations

from webhooks_core.models.deliveries import Attempt, Delivery, Event
from webhooks_core.models.dispatchers import DispatcherLease, EngineState, OwnerRemoval
from webhooks_core.models.endpoints import Endpoint, EndpointQueue, EndpointSecret

__all__ = [
    "Attempt",
    "Delivery",
    "DispatcherLease",
    "Endpoint",
    "EndpointQueue",
    "EndpointSecret",
    "EngineState",
    "Event",
    "OwnerRemoval",
]

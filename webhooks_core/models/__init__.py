"""The tables of the engine. The Delivery row is the outbox: a queued task is only a hint."""

from __future__ import annotations

from webhooks_core.models.deliveries import Attempt, Delivery, Event
from webhooks_core.models.dispatchers import DispatcherLease, EngineState, OwnerRemoval
from webhooks_core.models.endpoints import Endpoint, EndpointQueue, EndpointSecret
from webhooks_core.models.history import (
    AttemptHour,
    EndpointChange,
    ReplayJob,
    SkippedEvent,
)

__all__ = [
    "Attempt",
    "AttemptHour",
    "Delivery",
    "DispatcherLease",
    "Endpoint",
    "EndpointChange",
    "EndpointQueue",
    "EndpointSecret",
    "EngineState",
    "Event",
    "OwnerRemoval",
    "ReplayJob",
    "SkippedEvent",
]

"""The tables of the engine. The Delivery row is the outbox: a queued task is only a hint."""

from __future__ import annotations

from webhooks_core.models.deliveries import (
    Attempt,
    Delivery,
    Event,
    Trace,
)
from webhooks_core.models.dispatchers import Bell, Shift
from webhooks_core.models.endpoints import Endpoint, EndpointSecret, Lane

__all__ = [
    "Attempt",
    "Bell",
    "Delivery",
    "Endpoint",
    "EndpointSecret",
    "Event",
    "Lane",
    "Shift",
    "Trace",
]

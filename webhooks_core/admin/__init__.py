"""The admin of webhooks: what was sent, to whom, and with what result. History is read-only."""

from __future__ import annotations

from webhooks_core.admin.deliveries import DeliveryAdmin
from webhooks_core.admin.dispatchers import DispatcherLeaseAdmin
from webhooks_core.admin.endpoints import EndpointAdmin
from webhooks_core.admin.events import EventAdmin

__all__ = ["DeliveryAdmin", "DispatcherLeaseAdmin", "EndpointAdmin", "EventAdmin"]

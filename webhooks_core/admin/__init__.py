"""The admin of webhooks: what fails, what was sent, to whom, and with what result."""

from __future__ import annotations

from webhooks_core.admin.deliveries import DeliveryAdmin
from webhooks_core.admin.endpoints import EndpointAdmin
from webhooks_core.admin.events import EventAdmin

__all__ = ["DeliveryAdmin", "EndpointAdmin", "EventAdmin"]

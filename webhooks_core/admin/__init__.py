"""The admin of webhooks: what fails, what was sent, to whom, and with what result."""

from __future__ import annotations

from webhooks_core.admin.deliveries import DeliveryAdmin, EventAdmin
from webhooks_core.admin.endpoints import EndpointAdmin

__all__ = ["DeliveryAdmin", "EndpointAdmin", "EventAdmin"]

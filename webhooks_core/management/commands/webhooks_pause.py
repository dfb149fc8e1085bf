"""Pause endpoints: their deliveries wait until `webhooks_enable`."""

from __future__ import annotations

from webhooks_core import endpoints
from webhooks_core.management.endpoint_command import EndpointCommand
from webhooks_core.models import Endpoint
from webhooks_core.owners import changes


class Command(EndpointCommand):
    help = __doc__
    done = "paused"

    def apply(self, endpoint: Endpoint) -> bool:
        if endpoint.paused_at is not None:
            return False
        endpoints.pause(endpoint, by=changes.COMMAND)
        return True

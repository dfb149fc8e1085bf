"""Enable endpoints that are disabled, and resume those that are paused; what waits is sent now."""

from __future__ import annotations

from webhooks_core import endpoints
from webhooks_core.management.endpoint_command import EndpointCommand
from webhooks_core.models import Endpoint
from webhooks_core.owners import changes


class Command(EndpointCommand):
    help = __doc__
    done = "enabled"

    def apply(self, endpoint: Endpoint) -> bool:
        if not endpoint.may_be_enabled and endpoint.paused_at is None:
            return False
        if endpoint.may_be_enabled:
            endpoints.enable(endpoint, by=changes.COMMAND)
        if endpoint.paused_at is not None:
            endpoints.resume(endpoint, by=changes.COMMAND)
        return True

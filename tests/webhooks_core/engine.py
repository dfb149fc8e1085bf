"""Run the engine in a test, and read its result."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from webhooks_core.dispatch import dispatcher, rollups
from webhooks_core.models import Delivery, EngineState


def dispatch(**options) -> int:
    """Send what is due now; do not wait for what is due later."""
    return dispatcher.dispatch(**{"linger": timedelta(0)} | options)


def count_attempts() -> None:
    """Sum up the attempts that there are, as the sweeps of the next minutes do."""
    EngineState.objects.get_or_create(pk=1)
    for minutes in (1, 2):
        rollups.count_attempts(timezone.now() + minutes * rollups.COMMITTED_AFTER)


def only_delivery() -> Delivery:
    return Delivery.objects.get()

"""Run the engine in a test, and read its result."""

from __future__ import annotations

from datetime import timedelta

from webhooks_core.dispatch import dispatcher
from webhooks_core.models import Delivery


def dispatch(**options) -> int:
    """Send what is due now; do not wait for what is due later."""
    return dispatcher.dispatch(**{"linger": timedelta(0)} | options)


def only_delivery() -> Delivery:
    return Delivery.objects.get()

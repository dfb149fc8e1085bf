"""What django-q2 calls. A task is a hint: losing one loses nothing."""

from __future__ import annotations

from django.utils import timezone

from webhooks_core import stopping, tracing, wakeup
from webhooks_core.dispatch import drain as engine
from webhooks_core.dispatch import sweep as sweeper
from webhooks_core.models import Event, Lane


def drain() -> int:
    """Work one shift, cut short when the cluster is to stop; return the number of attempts."""
    try:
        return engine.drain(stop=stopping.is_set)
    finally:
        tracing.flush()


def sweep() -> None:
    """Repair and tidy; call a drain when work is due before the next sweep."""
    sweeper.sweep_as_scheduled()
    soon = timezone.now() + engine.LINGER
    if Lane.objects.due(soon, owner=0).exists() or Event.objects.fanning_out().exists():
        wakeup.call()

"""What django-q2 calls. A task is a hint: losing one loses nothing."""

from __future__ import annotations

from webhooks_core import tracing
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import sweep as sweeper
from webhooks_core.worker import notify, shutdown


def dispatch() -> int:
    """Work one shift, cut short when the cluster is to stop; return the number of attempts.

    One shift is always there, so that what is published finds somebody who waits for it.
    """
    try:
        return engine.dispatch(stop=shutdown.is_set, resident=True)
    finally:
        tracing.flush()


def sweep() -> None:
    """Repair and tidy; call a drain unless one is there."""
    sweeper.sweep_as_scheduled()
    notify.wake_dispatcher()

"""The tasks of django-q2. They are hints: a lost task loses no delivery."""

from __future__ import annotations

from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import notify
from webhooks_core.upkeep import removal
from webhooks_core.upkeep import sweep as sweeper
from webhooks_core.worker import processes


def dispatch() -> int:
    """Run a dispatcher until the cluster is to stop; return the number of attempts."""
    return engine.dispatch(stop=processes.is_stopping, resident=True)


def remove_ended_owners() -> int:
    """Remove the rows of accounts that were deleted; return how many owners are done."""
    return removal.remove_ended_owners()


def sweep() -> None:
    """Sweep, and wake a dispatcher unless one is live."""
    sweeper.sweep()
    notify.wake_dispatcher()

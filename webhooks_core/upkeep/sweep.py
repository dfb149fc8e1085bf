"""The sweep: repairs what a crash left behind, counts the repairs, and applies retention."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import structlog

from webhooks_core import changes
from webhooks_core.conf import webhook_settings
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases, queues
from webhooks_core.models import EngineState
from webhooks_core.upkeep.removal import REMOVAL_S, remove_ended_owners, remove_old

log = structlog.stdlib.get_logger(__name__)


class SweepReport(NamedTuple):
    """What one sweep did: the first two are repairs, `removed` is retention."""

    expired_leases: int = 0
    repaired_queues: int = 0
    removed: int = 0


def sweep(*, retention_s: float = REMOVAL_S) -> SweepReport:
    """Expire dead leases, repair due times, and remove what is old.

    Removes for at most `retention_s` seconds, and only while no work waits for a dispatcher. The
    stored time of the last sweep tells that tasks are run.
    """
    now = clock.measure()
    EngineState.objects.update_or_create(pk=1, defaults={"swept_at": now})
    remove_ended_owners(for_s=retention_s)
    before = now - timedelta(days=webhook_settings.RETENTION_DAYS)
    report = SweepReport(
        expired_leases=leases.expire_dead(),
        repaired_queues=queues.repair(now),
        removed=remove_old(before, for_s=retention_s),
    )
    if report.expired_leases or report.repaired_queues:
        log.warning(
            "sweep repaired",
            expired_leases=report.expired_leases,
            repaired_queues=report.repaired_queues,
        )
    changes.send_recovered()
    return report

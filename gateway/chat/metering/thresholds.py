"""Reports of budgets: a log line and an event for each share of a limit, once in a window."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from django.db import transaction

from gateway import events
from gateway.chat.metering.budget_rows import CounterKey
from gateway.chat.metering.reports import shown
from gateway.chat.metering.windows import end_of
from gateway.chat.models import BudgetCounter
from gateway.configuration.shapes import BudgetEntry
from gateway.event_types import BUDGET_SHARES, BUDGET_THRESHOLD
from gateway.events import Origin
from webhooks_core.times import iso

log = structlog.stdlib.get_logger(__name__)


class Reached(NamedTuple):
    """A counter with what it has used."""

    key: CounterKey
    budget: BudgetEntry
    amount: int


def highest_share(budget: BudgetEntry, amount: int) -> int:
    """Return the highest share that an amount reaches; 0 for none."""
    limit = budget.counted_limit
    reached = [share for share in BUDGET_SHARES if amount * 100 >= limit * share]
    return max(reached, default=0)


def report(counters: Iterable[Reached]) -> None:
    """Report each share that is reached and was not reported. Raises DatabaseError.

    A row says who reports a share: the process whose update changes it.
    """
    for counter in counters:
        for share in BUDGET_SHARES:
            if share <= highest_share(counter.budget, counter.amount):
                _report(counter, share)


def _report(counter: Reached, share: int) -> None:
    key, budget = counter.key, counter.budget
    rows = BudgetCounter.objects.filter(
        budget=key.budget, subject=key.subject, window=key.window
    )
    with transaction.atomic():
        if not rows.filter(reported__lt=share).update(reported=share):
            return
        if key.tenant:
            _publish(counter, share)
    log.warning(
        "budget threshold",
        budget=key.budget,
        subject=key.subject,
        percent=share,
        window=budget.window,
    )


def _publish(counter: Reached, share: int) -> None:
    key, budget = counter.key, counter.budget
    start = datetime.fromtimestamp(key.window, UTC)
    events.publish(
        origin=Origin.system(key.tenant),
        event_type=BUDGET_THRESHOLD,
        data={
            "budget": budget.name,
            "subject": key.subject,
            "counts": budget.counts,
            "window": budget.window,
            "percent": share,
            "limit": shown(budget, budget.counted_limit),
            "used": shown(budget, counter.amount),
            "resets_at": iso(end_of(budget.window, start)),
        },
    )

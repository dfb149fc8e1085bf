"""Alerts: one notice when an endpoint has failed for a while, one when it is disabled or works again.

`Endpoint.alerted_at` says that the incident is known. Whoever sets or clears it sends the notice,
so each is sent once, whatever number of processes sweep.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from webhooks_core.models import Endpoint
from webhooks_core.owners import notifications
from webhooks_core.profiles import NoticeKind

FAILING_AFTER = timedelta(minutes=10)
AT_ONCE = 100  # in one sweep; the next one goes on


def send_due(now: datetime) -> int:
    """Send the notices of incidents that began long enough ago or have ended; return how many."""
    failing = Endpoint.objects.receiving().filter(
        failing_since__lte=now - FAILING_AFTER, alerted_at=None
    )
    recovered = Endpoint.objects.filter(
        deleted_at=None,
        alerted_at__isnull=False,
        failing_since=None,
        refused_at=None,
    )
    return _send(failing, NoticeKind.FAILING, alerted_at=now) + _send(
        recovered, NoticeKind.RECOVERED, alerted_at=None
    )


def _send(
    due: QuerySet[Endpoint], kind: NoticeKind, *, alerted_at: datetime | None
) -> int:
    sent = 0
    for endpoint in due.defer("custom_headers").order_by("pk")[:AT_ONCE]:
        with transaction.atomic():
            # Of the same state: it may have changed since it was read.
            if due.filter(pk=endpoint.pk).update(alerted_at=alerted_at):
                notifications.send(
                    endpoint,
                    kind,
                    failures=endpoint.consecutive_failures,
                    error=endpoint.last_error,
                    since=endpoint.failing_since or endpoint.alerted_at,
                )
                sent += 1
    return sent


def refused(endpoint: Endpoint, *, error: str, now: datetime) -> None:
    """Send the notice that an endpoint is off as its receiver asked, in its transaction.

    If it had failed, a success after it is switched on ends the incident.
    """
    failing = Endpoint.objects.filter(pk=endpoint.pk, failing_since__isnull=False)
    failing.update(alerted_at=now)
    notifications.send(endpoint, NoticeKind.DISABLED, error=error, since=now)


def disabled(endpoint: Endpoint, *, failures: int, error: str, now: datetime) -> None:
    """Send the notice that the engine has disabled an endpoint, in its transaction."""
    unknown = Endpoint.objects.filter(pk=endpoint.pk, alerted_at=None)
    notifications.send(
        endpoint,
        NoticeKind.DISABLED,
        failures=failures,
        error=error,
        since=now,
        is_first=unknown.update(alerted_at=now) == 1,
    )

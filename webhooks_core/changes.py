"""Who changes an endpoint: each change is one line of the log. And notices to owners.

An endpoint was disabled, and it works again: each is sent once per incident. `Endpoint.alerted_at`
says that an incident is known. Whoever clears it sends the second notice, whatever number of
processes sweep.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind

AT_ONCE = 100  # notices in one sweep; the next one goes on

log = structlog.stdlib.get_logger(__name__)


class Actor(NamedTuple):
    """Who does something: `owner`, `operator`, `command`, `configuration` or `engine`; a name.

    `owner` is a person or program that acts for the owner: an account, a principal.
    """

    kind: str
    name: str = ""


ENGINE = Actor("engine")
COMMAND = Actor("command")
CONFIGURATION = Actor("configuration")


def record(endpoint_id: str, action: str, *, by: Actor, **details: Any) -> None:
    """Log a change of an endpoint, by its public id, after the caller's commit.

    `details` never hold a secret or the value of a header.
    """
    line = {"endpoint": endpoint_id, "action": action, "by": by.kind, "actor": by.name}
    transaction.on_commit(
        lambda: log.info("endpoint changed", **line, **details), robust=True
    )


def send_disabled(
    endpoint: Endpoint, *, failures: int, error: str, now: datetime
) -> None:
    """Send the notice that the engine has disabled an endpoint, in its transaction."""
    Endpoint.objects.filter(pk=endpoint.pk).update(alerted_at=now)
    _send_on_commit(endpoint, NoticeKind.DISABLED, failures, error)


def send_recovered() -> None:
    """Send the notices of incidents that have ended by a success."""
    ended = Endpoint.objects.filter(
        deleted_at=None, alerted_at__isnull=False, failing_since=None
    )
    for endpoint in ended.defer("custom_headers").order_by("pk")[:AT_ONCE]:
        with transaction.atomic():
            # Of the same state: it may have changed since it was read.
            if ended.filter(pk=endpoint.pk).update(alerted_at=None):
                _send_on_commit(endpoint, NoticeKind.RECOVERED)


def _send_on_commit(
    endpoint: Endpoint, kind: NoticeKind, failures: int = 0, error: str = ""
) -> None:
    notice = Notice(
        kind=kind,
        profile=endpoint.profile,
        owner=endpoint.owner,
        endpoint_id=endpoint.public_id,
        failures=failures,
        error=error,
    )
    transaction.on_commit(lambda: _send(notice), robust=True)


def _send(notice: Notice) -> None:
    """Log a notice and pass it to the product, whose error is only logged."""
    log.warning(
        "endpoint notice",
        kind=notice.kind.value,
        endpoint=notice.endpoint_id,
        owner=notice.owner,
        failures=notice.failures,
        error=notice.error,
    )
    if (hook := profiles.get(notice.profile).on_notice) is None:
        return
    try:
        hook(notice)
    except Exception:
        log.exception("notice hook failed", endpoint=notice.endpoint_id)

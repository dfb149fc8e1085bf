"""Notices that an endpoint was disabled or works again: a log event, and a call of the product's hook."""

from __future__ import annotations

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind

log = structlog.stdlib.get_logger(__name__)

# The end of fewer failures in a row is not worth a notice.
RECOVERED_AFTER = 5


def send(
    endpoint: Endpoint, kind: NoticeKind, *, failures: int = 0, error: str = ""
) -> None:
    """Send a notice after the caller's commit; an error of the hook is only logged."""
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
    event = f"endpoint {notice.kind}"
    log.warning(
        event,
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
        log.exception(
            "notice hook failed", kind=notice.kind, endpoint=notice.endpoint_id
        )

"""Notices that an endpoint fails, was disabled or works again: a log event, and the product's hook."""

from __future__ import annotations

from datetime import datetime

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind

log = structlog.stdlib.get_logger(__name__)


def send(
    endpoint: Endpoint,
    kind: NoticeKind,
    *,
    failures: int = 0,
    error: str = "",
    since: datetime | None = None,
    is_first: bool = False,
) -> None:
    """Send a notice after the caller's commit; an error of the hook is only logged."""
    notice = Notice(
        kind=kind,
        profile=endpoint.profile,
        owner=endpoint.owner,
        endpoint_id=endpoint.public_id,
        failures=failures,
        error=error,
        since=since,
        is_first=is_first,
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

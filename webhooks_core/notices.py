"""Notices: an endpoint was disabled, or works again. A log event, and the product's hook."""

from __future__ import annotations

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind

log = structlog.stdlib.get_logger(__name__)

SAID = {kind: f"endpoint {kind}" for kind in NoticeKind}
# Fewer failures in a row are no news when they end.
RECOVERED_AFTER = 5


def send(
    endpoint: Endpoint, kind: NoticeKind, *, failures: int = 0, error: str = ""
) -> None:
    """Give notice once the caller's transaction has committed; no hook's error fails anybody."""
    notice = Notice(
        kind=kind,
        profile=endpoint.profile,
        owner=endpoint.owner,
        endpoint_id=endpoint.public_id,
        failures=failures,
        error=error,
    )

    def give_now() -> None:
        _give(notice)

    transaction.on_commit(give_now, robust=True)


def _give(notice: Notice) -> None:
    log.warning(
        SAID[notice.kind],
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

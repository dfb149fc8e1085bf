"""The policy writer: stores denials, and publishes them."""

from __future__ import annotations

import structlog
from django.db import transaction

from gateway import events
from gateway.identity import Caller
from gateway.models import PolicyDecision
from webhooks_core.ids import public_id

log = structlog.stdlib.get_logger(__name__)


def record_denial(
    *,
    caller: Caller,
    action: str,
    resource: str,
    reason: str,
    request_id: str = "",
    trace_id: str = "",
) -> PolicyDecision:
    """Store that a policy denied an action and publish it; return the decision.

    Synchronous, for a background task. A failure to publish is logged and leaves the
    decision stored. `resource` is cut to 255 characters; what a database cannot store is
    replaced.
    """
    with transaction.atomic():
        decision = PolicyDecision.objects.create(
            public_id=public_id("pol_"),
            tenant=caller.tenant,
            principal=caller.principal,
            action=action,
            resource=storable(resource)[:255],
            reason=storable(reason)[:255],
            request_id=request_id,
            trace_id=trace_id,
        )
        _publish(decision)
    return decision


def _publish(decision: PolicyDecision) -> None:
    try:
        with transaction.atomic():
            events.publish_violation(decision)
    except Exception:
        log.exception("policy event not published", decision=decision.public_id)


def storable(text: str) -> str:
    """Return a text as every database can store it."""
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()

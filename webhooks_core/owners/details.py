"""A delivery with all of its attempts, as its owner may see it: what REST and MCP answer."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import deliveries, wording
from webhooks_core.secrets import HIDDEN
from webhooks_core.targets import may_be_internal

# What began the first attempt; a person or the retry policy begins the others.
FIRST_TRIGGERS = {
    Delivery.Trigger.EVENT: "scheduled",
    Delivery.Trigger.TEST: "test",
    Delivery.Trigger.MANUAL: "manual",
}
TRIGGERS = ("scheduled", "retry", "manual", "test")


def details_of(delivery: Delivery) -> dict[str, Any]:
    """Return what an owner may see of a delivery, read with its event and endpoint.

    `sensitive` names the headers with masked values.
    """
    delivery, attempts = deliveries.snapshot(delivery)
    is_hidden = may_be_internal(delivery.endpoint)
    shown = [_shown(delivery, attempt, is_hidden) for attempt in attempts]
    masked = {
        name: None
        for attempt in shown
        for name, value in attempt["request_headers"]
        if value == HIDDEN
    }
    event = delivery.event
    return {
        "row": deliveries.row_of(delivery),
        "trigger": delivery.trigger,
        "next_attempt_at": delivery.next_attempt_at,
        "waits": wording.waits(delivery, timezone.now()),
        "resent": deliveries.resent([delivery]).get(delivery.pk),
        "event": {
            "id": event.public_id,
            "type": event.type,
            "created_at": event.created_at,
            "payload": bytes(event.body).decode(errors="replace"),
        },
        "attempts": shown,
        "sensitive": list(masked),
    }


def _shown(delivery: Delivery, attempt: Attempt, is_hidden: bool) -> dict[str, Any]:
    """Return an attempt; what came back is None where it is for operators alone."""
    details = attempt.details
    text = bytes(attempt.response_body).decode(errors="replace").replace("\x00", "�")
    headers = deliveries.header_lines(details.get("response"))
    first = FIRST_TRIGGERS[Delivery.Trigger(delivery.trigger)]
    return {
        "number": attempt.number,
        "trigger": first if attempt.number == 1 else "retry",
        "started_at": attempt.started_at,
        "duration_ms": attempt.duration_ms,
        "url": details.get("url", ""),
        "request_headers": deliveries.header_lines(details.get("request")),
        "response_status": attempt.status_code,
        "response_headers": None if is_hidden else headers,
        "response_text": None if is_hidden else text,
        "error_class": "" if attempt.outcome == Outcome.OK else attempt.outcome,
        "error": attempt.error,
    }

"""A delivery with all of its attempts, as its owner may see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.utils import timezone

from webhooks_core.endpoints import may_be_internal
from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.outcomes import Outcome
from webhooks_core.owners import changes, replays, why
from webhooks_core.owners.attempts import Headers, headers
from webhooks_core.owners.changes import Action
from webhooks_core.owners.replays import Resent
from webhooks_core.secrets import HIDDEN

# Of the attempt that began a delivery.
FIRST_TRIGGERS = {
    Delivery.Trigger.EVENT: "scheduled",
    Delivery.Trigger.TEST: "test",
    Delivery.Trigger.REPLAY: "replay",
    Delivery.Trigger.MANUAL: "manual",
}
TRIGGERS = ("scheduled", "retry", "replay", "manual", "test")


@dataclass(frozen=True, slots=True)
class AttemptDetails:
    """One attempt; what came back is None where it is for operators alone."""

    number: int
    trigger: str
    started_at: datetime
    duration_ms: int
    url: str
    request_headers: Headers
    response_status: int | None
    response_headers: Headers | None
    response_text: str | None
    error_class: str
    error: str


@dataclass(frozen=True, slots=True)
class DeliveryDetails:
    """A delivery, its attempts, oldest first, and why it waits, "" if it does not.

    `sensitive` names the headers with masked values.
    """

    delivery: Delivery
    resent: Resent | None
    waits: str
    payload: str
    attempts: Sequence[AttemptDetails]
    sensitive: Sequence[str]

    @property
    def row(self) -> dict[str, Any]:
        """The delivery as in the list of a product."""
        return row_of(self.delivery)


def details_of(delivery: Delivery) -> DeliveryDetails:
    """Return what an owner may see of a delivery, read with its event and endpoint."""
    attempts = list(delivery.attempt_set.order_by("number"))
    is_hidden = may_be_internal(delivery.endpoint)
    shown = [
        _shown(attempt, trigger, is_hidden=is_hidden)
        for attempt, trigger in zip(
            attempts, _triggers(delivery, attempts), strict=True
        )
    ]
    masked = {
        name: None
        for attempt in shown
        for name, value in attempt.request_headers
        if value == HIDDEN
    }
    return DeliveryDetails(
        delivery=delivery,
        resent=replays.resent([delivery]).get(delivery.pk),
        waits=why.waits(delivery, timezone.now()),
        payload=bytes(delivery.event.body).decode(errors="replace"),
        attempts=shown,
        sensitive=list(masked),
    )


def _triggers(delivery: Delivery, attempts: Sequence[Attempt]) -> list[str]:
    """Return what caused each attempt: the first after a person asked is a manual one."""
    asked = changes.of(delivery.endpoint).filter(
        action=Action.RETRIED, subject=delivery.public_id
    )
    times = list(asked.values_list("at", flat=True))
    starts = [attempt.started_at for attempt in attempts]
    triggers = [FIRST_TRIGGERS[Delivery.Trigger(delivery.trigger)]][: len(attempts)]
    for earlier, later in pairwise(starts):
        is_manual = any(earlier < at <= later for at in times)
        triggers.append("manual" if is_manual else "retry")
    return triggers


def _shown(attempt: Attempt, trigger: str, *, is_hidden: bool) -> AttemptDetails:
    details = attempt.details
    text = bytes(attempt.response_body).decode(errors="replace").replace("\x00", "�")
    is_ok = attempt.outcome == Outcome.OK
    return AttemptDetails(
        number=attempt.number,
        trigger=trigger,
        started_at=attempt.started_at,
        duration_ms=attempt.duration_ms,
        url=details.get("url", ""),
        request_headers=headers(details.get("request")),
        response_status=attempt.status_code,
        response_headers=None if is_hidden else headers(details.get("response")),
        response_text=None if is_hidden else text,
        error_class="" if is_ok else attempt.outcome,
        error=attempt.error,
    )


def row_of(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery as the row from which a product's record is made."""
    return {
        "public_id": delivery.public_id,
        "endpoint_id": delivery.endpoint.public_id,
        "event__public_id": delivery.event.public_id,
        "event__type": delivery.event.type,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "last_error": delivery.last_error,
        "next_attempt_at": delivery.next_attempt_at,
        "delivered_at": delivery.delivered_at,
        "created_at": delivery.created_at,
    }

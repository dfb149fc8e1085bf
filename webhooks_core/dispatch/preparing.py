"""What a profile sends in place of an event's stored body, and what it does not let be sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import F

from webhooks_core import profiles
from webhooks_core.dispatch.sql.deliveries import DueDelivery
from webhooks_core.dispatch.sql.endpoints import Body
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.profiles import Prepared, Sending, WebhookProfile


class Claimed(NamedTuple):
    """Claimed deliveries that are sent, and what is sent for each, by its primary key."""

    due: list[DueDelivery]
    bodies: dict[int, Body]


def prepare(
    due: Sequence[DueDelivery],
    endpoints: Mapping[int, Endpoint],
    bodies: Mapping[int, Body],
    *,
    lease: int,
) -> Claimed:
    """Let profiles prepare what is claimed; fail what they refuse. `bodies` are those of events."""
    sent = {row.pk: bodies[row.event_pk] for row in due}
    by_profile: dict[str, list[DueDelivery]] = defaultdict(list)
    for row in due:
        by_profile[endpoints[row.queue].profile].append(row)
    refused: dict[str, list[int]] = defaultdict(list)
    for name, rows in by_profile.items():
        for pk, prepared in _prepared(profiles.get(name), rows, bodies).items():
            if isinstance(prepared, Prepared):
                sent[pk] = sent[pk]._replace(
                    bytes=prepared.body, headers=prepared.headers
                )
            else:
                refused[prepared].append(pk)
                del sent[pk]
    for error, pks in refused.items():
        claimed = Delivery.objects.claimed(pks, lease=lease)
        claimed.update(attempts=F("attempts") - 1)  # none was made
        claimed.fail(error=error)
    return Claimed([row for row in due if row.pk in sent], sent)


def _prepared(
    profile: WebhookProfile, rows: Sequence[DueDelivery], bodies: Mapping[int, Body]
) -> Mapping[int, Prepared | str]:
    if profile.prepare is None:
        return {}
    return profile.prepare([_sending(row, bodies[row.event_pk]) for row in rows])


def _sending(row: DueDelivery, body: Body) -> Sending:
    return Sending(row.pk, row.queue, row.event_pk, body.type, body.bytes)

"""What is sent of a claim: the stored bodies, or what a profile sends in place of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.models import F

from webhooks_core import profiles
from webhooks_core.database.statements import fetch_binary
from webhooks_core.dispatch.sql import DueDelivery
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.models.lookups import among
from webhooks_core.profiles import Prepared, Sending, WebhookProfile


class Body(NamedTuple):
    """What of an event is needed to send it, with headers for one endpoint alone."""

    public_id: str
    type: str
    bytes: bytes
    headers: Mapping[str, str] = {}


class Claimed(NamedTuple):
    """Claimed deliveries that are sent, and what is sent for each, by its primary key."""

    due: list[DueDelivery]
    bodies: dict[int, Body]


def prepare(
    due: Sequence[DueDelivery], endpoints: Mapping[int, Endpoint], *, lease: int
) -> Claimed:
    """Let profiles prepare what is claimed; fail what they refuse."""
    bodies = _bodies({row.event_pk for row in due})
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


def _bodies(event_pks: Collection[int]) -> dict[int, Body]:
    if not event_pks:
        return {}
    events = Event.objects.filter(among(event_pks))
    rows: Iterable[tuple[int, str, str, bytes]] = fetch_binary(
        events.values_list("pk", "public_id", "type", "body")
    )
    return {pk: Body(id_, kind, bytes(body)) for pk, id_, kind, body in rows}


def _prepared(
    profile: WebhookProfile, rows: Sequence[DueDelivery], bodies: Mapping[int, Body]
) -> Mapping[int, Prepared | str]:
    if profile.prepare is None:
        return {}
    return profile.prepare([_sending(row, bodies[row.event_pk]) for row in rows])


def _sending(row: DueDelivery, body: Body) -> Sending:
    return Sending(row.pk, row.queue, row.event_pk, body.type, body.bytes)

"""Each statement written as SQL does on random rows what the ORM does.

The statements are SQL because composing them costs more than executing them. The QuerySets say
what they mean.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import starmap
from random import Random

import pytest
import time_machine
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, When

from tests.webhooks_core.random_rows import (
    ENDPOINTS,
    EVENTS,
    NOW,
    OWNERS,
    Arguments,
    Row,
    Tables,
    arguments,
    fill,
    plain,
    stored,
)
from webhooks_core import profiles, publishing
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.leases import LeaseLostError
from webhooks_core.dispatch.shares import Owner
from webhooks_core.dispatch.sql import deliveries, endpoints, queues
from webhooks_core.dispatch.sql.deliveries import DueDelivery
from webhooks_core.dispatch.sql.endpoints import Body
from webhooks_core.dispatch.sql.queues import LEASED_COLUMNS, LeasedRow
from webhooks_core.models import (
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    Event,
)
from webhooks_core.models.deliveries import DeliveryQuerySet
from webhooks_core.publishing import Matching
from webhooks_core.worker import notify

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain", "shop")]


# ── Pairs: a statement as SQL, and the same by the ORM ──────────────────────────────


def claim(given: Arguments) -> int:
    return deliveries.claim(given.deliveries, lease=given.lease)


def claim_by_orm(given: Arguments) -> int:
    waiting = Delivery.objects.waiting().filter(pk__in=given.deliveries)
    return waiting.update(
        attempts=F("attempts") + 1, claimed_by=given.lease, claimed_at=NOW
    )


def claimed_by_orm(given: Arguments) -> DeliveryQuerySet:
    return Delivery.objects.claimed(given.deliveries, lease=given.lease)


def still_claimed(given: Arguments) -> set[int]:
    return deliveries.still_claimed(given.deliveries, lease=given.lease)


def still_claimed_by_orm(given: Arguments) -> set[int]:
    return set(claimed_by_orm(given).values_list("pk", flat=True))


def deliver(given: Arguments) -> None:
    deliveries.deliver(given.deliveries, lease=given.lease, at=given.at)


def deliver_by_orm(given: Arguments) -> None:
    claimed_by_orm(given).update(
        status=Delivery.Status.DELIVERED,
        delivered_at=given.at,
        next_attempt_at=None,
        claimed_by=None,
    )


def read_due(given: Arguments) -> list[DueDelivery]:
    """In the order of each queue: that of queues is free."""
    rows = deliveries.due_deliveries(given.limits, NOW)
    return sorted(rows, key=lambda row: row.queue)


def read_due_by_orm(given: Arguments) -> list[DueDelivery]:
    later = Case(When(next_attempt_at__gt=NOW, then="next_attempt_at"))
    found: list[DueDelivery] = []
    for limit in sorted(given.limits):
        waiting = Delivery.objects.waiting().filter(endpoint=limit.queue)
        columns = ("pk", "public_id", "event_id", "endpoint_id", "attempts")
        rows = waiting.order_by("next_attempt_at", "pk").values_list(
            *columns, "interruptions", "event__size", later
        )
        found += map(DueDelivery._make, rows[: limit.room + 1])
    return found


def read_endpoints(given: Arguments) -> dict[int, Row]:
    return {pk: loaded(row) for pk, row in endpoints.by_pk(given.endpoints).items()}


def read_endpoints_by_orm(given: Arguments) -> dict[int, Row]:
    rows = Endpoint.objects.defer(*endpoints.UNREAD)
    return {pk: loaded(row) for pk, row in rows.in_bulk(given.endpoints).items()}


def loaded(endpoint: Endpoint) -> Row:
    return plain(
        {name: vars(endpoint)[name] for name in vars(endpoint).keys() - {"_state"}}
    )


LISTED = ("public_id", "url", "event_types", "filter", "created_at", "last_attempt_at")


def read_lists(given: Arguments) -> list[Row]:
    owners = [Endpoint.objects.read_list(*owner, columns=LISTED) for owner in OWNERS]
    return [loaded(endpoint) for rows in owners for endpoint in rows]


def read_lists_by_orm(given: Arguments) -> list[Row]:
    owners = [Endpoint.objects.of(*owner).order_by("-pk") for owner in OWNERS]
    return [loaded(endpoint) for rows in owners for endpoint in rows.only(*LISTED)]


def read_bodies(given: Arguments) -> dict[int, Body]:
    return endpoints.bodies(given.events)


def read_bodies_by_orm(given: Arguments) -> dict[int, Body]:
    return {
        pk: Body(event.public_id, event.type, bytes(event.body))
        for pk, event in Event.objects.in_bulk(given.events).items()
    }


def read_secrets(given: Arguments) -> dict[int, list[str]]:
    values: dict[int, list[str]] = defaultdict(list)
    for pk, secret in endpoints.secrets(given.endpoints, given.at):
        values[pk].append(secret.decrypt())
    return values


def read_secrets_by_orm(given: Arguments) -> dict[int, list[str]]:
    rows = Endpoint.objects.filter(pk__in=given.endpoints)
    values = {row.pk: row.secrets(now=given.at) for row in rows}
    return {pk: secrets for pk, secrets in values.items() if secrets}


def match(given: Arguments) -> list[Matching]:
    return [
        publishing._matching(profiles.get(profile), owner, "thing.made")
        for profile, owner in OWNERS
    ]


def match_by_orm(given: Arguments) -> list[Matching]:
    return [matching_by_orm(owner) for owner in OWNERS]


def matching_by_orm(owner: Owner) -> Matching:
    own = Endpoint.objects.of(*owner).subscribed().order_by("pk")
    rows = [row for row in own if "thing.made" in row.event_types]
    return Matching(
        [row.pk for row in rows],
        {row.pk: json.dumps(row.filter) for row in rows if row.filter is not None},
    )


def create_deliveries(given: Arguments) -> None:
    Delivery.objects.all().delete()
    event = Event.objects.get(pk=EVENTS[0])
    endpoint_ids = [pk for pk in given.endpoints if pk in ENDPOINTS]
    publishing.deliver(event, endpoint_ids, trigger=Delivery.Trigger.TEST)


def create_deliveries_by_orm(given: Arguments) -> None:
    Delivery.objects.all().delete()
    Delivery.objects.bulk_create(
        Delivery(
            public_id=f"dlv_{pk}",
            event_id=EVENTS[0],
            endpoint_id=pk,
            trigger=Delivery.Trigger.TEST,
        )
        for pk in given.endpoints
        if pk in ENDPOINTS
    )


def succeed(given: Arguments) -> None:
    endpoints.succeed(given.endpoints, given.at)


def succeed_by_orm(given: Arguments) -> None:
    Endpoint.objects.filter(pk__in=given.endpoints).update(
        last_attempt_at=given.at,
        last_success_at=given.at,
        consecutive_failures=0,
        timeouts=0,
        hanging_since=None,
        failing_since=None,
        failed_attempts=0,
        alike_failures=0,
    )


def lock_lease(given: Arguments) -> bool:
    try:
        with transaction.atomic():
            leases.lock(DispatcherLease(pk=given.lease))
    except LeaseLostError:
        return False
    return True


def lock_lease_by_orm(given: Arguments) -> bool:
    return DispatcherLease.objects.filter(pk=given.lease, ended_at=None).exists()


def due_times() -> list[datetime]:
    rows = EndpointQueue.objects.exclude(next_due_at=None).order_by("next_due_at")
    return [at for at in rows.values_list("next_due_at", flat=True) if at]


def has_due(given: Arguments) -> list[bool]:
    return [queues.has_due(given.lease, at) for at in due_times()]


def has_due_by_orm(given: Arguments) -> list[bool]:
    rows = EndpointQueue.objects
    return [rows.due(at, lease=given.lease).exists() for at in due_times()]


def lease_queues(given: Arguments) -> set[LeasedRow]:
    lease = DispatcherLease(pk=given.lease)
    try:
        rows = queues.lease_due(lease, given.at, given.room, without=given.without)
    except LeaseLostError:
        return set()
    return set(rows)


def lease_queues_by_orm(given: Arguments) -> set[LeasedRow]:
    if not lock_lease_by_orm(given):
        return set()
    receiving = Exists(Endpoint.objects.receiving().filter(pk=OuterRef("pk")))
    free = EndpointQueue.objects.due(given.at, lease=given.lease)
    for profile, owner in given.without:
        free = free.exclude(endpoint__profile=profile, endpoint__owner=owner)
    rows = set(
        starmap(LeasedRow, free.values_list(*LEASED_COLUMNS, receiving)[: given.room])
    )
    leased = EndpointQueue.objects.filter(pk__in=[row.pk for row in rows])
    leased.update(leased_by=given.lease, next_due_at=None)
    return rows


def mark_due(given: Arguments) -> None:
    notify.notify(given.endpoints, at=given.at)


def mark_due_by_orm(given: Arguments) -> None:
    EndpointQueue.objects.mark_due(given.endpoints, at=given.at)


Action = Callable[[Arguments], object]
Undo = Callable[[], AbstractContextManager[None]]
PAIRS: list[tuple[Action, Action]] = [
    (claim, claim_by_orm),
    (still_claimed, still_claimed_by_orm),
    (deliver, deliver_by_orm),
    (read_due, read_due_by_orm),
    (read_endpoints, read_endpoints_by_orm),
    (read_lists, read_lists_by_orm),
    (read_bodies, read_bodies_by_orm),
    (read_secrets, read_secrets_by_orm),
    (match, match_by_orm),
    (create_deliveries, create_deliveries_by_orm),
    (succeed, succeed_by_orm),
    (lock_lease, lock_lease_by_orm),
    (has_due, has_due_by_orm),
    (lease_queues, lease_queues_by_orm),
]


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def undone_in_queues() -> Iterator[None]:
    """As undone(), without a transaction."""
    rows = list(EndpointQueue.objects.all())
    yield
    EndpointQueue.objects.bulk_update(rows, ["next_due_at"])


def compare(by_sql: Action, by_orm: Action, undo: Undo = undone) -> None:
    """Compare what both return on random rows, and all rows after each call."""

    def outcome(action: Action, given: Arguments) -> tuple[object, Tables]:
        with undo():
            return action(given), stored()

    effects = 0
    with time_machine.travel(NOW, tick=False):
        for seed in range(2):
            chance = Random(seed)  # noqa: S311 - the same rows in each run
            fill(chance)
            nothing = None, stored()
            for _ in range(8):
                given = arguments(chance)
                done = outcome(by_sql, given)
                assert done == outcome(by_orm, given), given
                effects += done != nothing
    assert effects > 1  # two that find and change nothing would be equal too


@pytest.mark.parametrize(
    ("by_sql", "by_orm"), PAIRS, ids=[by_sql.__name__ for by_sql, _ in PAIRS]
)
def test_a_statement_does_what_the_orm_does(by_sql, by_orm):
    compare(by_sql, by_orm)


@pytest.mark.django_db(transaction=True)
def test_a_notification_does_what_the_orm_does():
    """Outside a transaction, where PostgreSQL gets one statement for it."""
    compare(mark_due, mark_due_by_orm, undone_in_queues)

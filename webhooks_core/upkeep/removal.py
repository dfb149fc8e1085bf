"""Removal of an owner: endpoints end with their account; the rows are removed after the commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from webhooks_core.database import limits
from webhooks_core.dispatch.sender import STALE_AFTER_S
from webhooks_core.models import (
    Delivery,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
    OwnerRemoval,
)
from webhooks_core.upkeep.retention import (
    delete_unreferenced,
    remove_deliveries,
    remove_events,
)
from webhooks_core.worker import notify

REMOVE = "webhooks_core.tasks.remove_ended_owners"
# Even a dispatcher that was suspended has dropped by then what it had not started.
SETTLED_AFTER = timedelta(seconds=2 * STALE_AFTER_S)
POLL_S = 0.01
# Of the minute between two scheduled sweeps.
REMOVAL_S = 40.0


def end_owner(*, profile: str, owner: str) -> None:
    """End all that an owner has in a profile, static endpoints excepted, for good.

    Joins the caller's transaction, and locks nothing that a dispatcher waits for. After its commit
    nothing is claimed, and the commit returns when the dispatchers have dropped what they had
    claimed and not started. A task removes the rows; if it is lost, the sweep does.
    """
    now = timezone.now()
    with transaction.atomic():
        endpoints = Endpoint.objects.of(profile, owner).filter(static_key=None)
        pks = list(endpoints.order_by("pk").values_list("pk", flat=True))
        Endpoint.objects.filter(pk__in=pks).end(now)
        if not (_ended(profile, owner).exists() or _events(profile, owner).exists()):
            return
        OwnerRemoval.objects.update_or_create(
            profile=profile, owner=owner, defaults={"ended_at": now}
        )
        notify.recall_on_commit(pks)

        def settle() -> None:
            _await_dispatchers(pks)
            # What they saw, they then dropped: when they see it again, nothing can start.
            notify.recall(pks)
            _await_dispatchers(pks)
            notify.enqueue(REMOVE)

        transaction.on_commit(settle, robust=True)


def _await_dispatchers(pks: Sequence[int]) -> None:
    """Return when every dispatcher has seen that these endpoints ended, or can start nothing more.

    A dispatcher clears the due time of its queue when it sees the endpoint's state.
    """
    unseen = EndpointQueue.objects.filter(
        pk__in=pks, leased_by__isnull=False, next_due_at__isnull=False
    )
    until = time.monotonic() + STALE_AFTER_S
    while pks and unseen.exists() and time.monotonic() < until:
        time.sleep(POLL_S)


def remove_ended_owners(*, for_s: float = REMOVAL_S) -> int:
    """Remove the rows of owners that have ended, for some seconds; return how many are done.

    An owner whose requests may be in flight is left to a later call.
    """
    until = time.monotonic() + for_s
    removals = OwnerRemoval.objects.order_by("pk")
    return sum(_remove(removal, until) for removal in removals)


def remove_owner(*, profile: str, owner: str) -> None:
    """Remove the rows of an owner that has ended; wait for what may be in flight."""
    ended = OwnerRemoval.objects.filter(profile=profile, owner=owner)
    while removal := ended.first():
        if not _remove(removal, time.monotonic() + REMOVAL_S):
            time.sleep(POLL_S)


def _remove(removal: OwnerRemoval, until: float) -> bool:
    """Remove the rows of an owner in short steps; return False if some are left."""
    profile, owner = removal.profile, removal.owner
    claimed = Delivery.objects.pending().filter(
        endpoint__in=_ended(profile, owner), claimed_by__isnull=False
    )
    age = timezone.now() - removal.ended_at
    if timedelta(0) <= age < SETTLED_AFTER and claimed.exists():
        return False
    claimed.fail(error="endpoint deleted")  # their results are not recorded any more
    if not remove_events(profile=profile, owner=owner, until=until):
        return False
    if not remove_deliveries(_ended(profile, owner), until=until):
        return False
    with transaction.atomic():
        limits.limit_idle()
        _remove_endpoints(profile, owner)
        if is_done := not _ended(profile, owner).exists():
            # Not a later one, of an owner that has come back and ended again.
            OwnerRemoval.objects.filter(
                pk=removal.pk, ended_at=removal.ended_at
            ).delete()
    return is_done


def _remove_endpoints(profile: str, owner: str) -> None:
    """Remove the ended endpoints without deliveries; locked, they get none from now on."""
    ended = _ended(profile, owner).select_for_update().order_by("pk")
    pks = list(ended.values_list("pk", flat=True))
    has_deliveries = Exists(Delivery.objects.filter(endpoint=OuterRef("pk")))
    empty = Endpoint.objects.filter(~has_deliveries, pk__in=pks)
    pks = list(empty.values_list("pk", flat=True))
    for rows in (
        EndpointSecret.objects.filter(endpoint__in=pks),
        EndpointQueue.objects.filter(endpoint__in=pks),
        Endpoint.objects.filter(pk__in=pks),
    ):
        delete_unreferenced(rows)


def _ended(profile: str, owner: str) -> Any:
    return Endpoint.objects.filter(
        profile=profile, owner=owner, deleted_at__isnull=False
    )


def _events(profile: str, owner: str) -> Any:
    return Event.objects.filter(profile=profile, owner=owner)

"""Claim deliveries and write what became of them: one statement for all of a batch.

Each checks the claim: what another process has freed since stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from webhooks_core.database.clock import clock
from webhooks_core.database.statements import execute, fetch, ids
from webhooks_core.models import Delivery

# Of DeliveryQuerySet.waiting and claimed. Statuses are in the text: with a parameter, SQLite would
# use no partial index.
_IS_WAITING = (
    f"id AMONG %s AND status = {Delivery.Status.PENDING:d} AND claimed_by IS NULL"
)
_IS_CLAIMED = (
    f"id AMONG %s AND status = {Delivery.Status.PENDING:d} AND claimed_by = %s"
)
_CLAIM = (
    "UPDATE webhooks_core_delivery"  # noqa: S608 - all constants
    " SET attempts = attempts + 1, claimed_by = %s, claimed_at = %s"
    f" WHERE {_IS_WAITING}"
)
_HOW_MANY = f"SELECT count(*) FROM webhooks_core_delivery WHERE {_IS_CLAIMED}"  # noqa: S608
_WHICH = f"SELECT id FROM webhooks_core_delivery WHERE {_IS_CLAIMED}"  # noqa: S608
_RELEASE = (
    "UPDATE webhooks_core_delivery SET attempts = attempts - 1, claimed_by = NULL"  # noqa: S608
    f" WHERE {_IS_CLAIMED}"
)
_DELIVER = (
    f"UPDATE webhooks_core_delivery SET status = {Delivery.Status.DELIVERED:d},"  # noqa: S608
    f" delivered_at = %s, next_attempt_at = NULL, claimed_by = NULL WHERE {_IS_CLAIMED}"
)


def claim(pks: Collection[int], *, lease: int) -> int:
    """Claim waiting deliveries for one attempt each; return how many were still waiting."""
    return execute(_CLAIM, lease, clock.now(), ids(pks)) if pks else 0


def still_claimed(pks: Collection[int], *, lease: int) -> set[int]:
    """Return those of `pks` that this lease still claims: the fencing token's check."""
    [(count,)] = fetch(_HOW_MANY, ids(pks), lease)
    if count == len(pks):
        # Almost always. On SQLite each row that is read may wait for the thread of the sender.
        return set(pks)
    return {pk for (pk,) in fetch(_WHICH, ids(pks), lease)}


def release(pks: Collection[int], *, lease: int) -> int:
    """Release what was claimed and not attempted; return how many."""
    return execute(_RELEASE, ids(pks), lease) if pks else 0


def deliver(pks: Collection[int], *, lease: int, at: datetime) -> None:
    """Mark claimed deliveries as delivered."""
    if pks:
        execute(_DELIVER, at, ids(pks), lease)

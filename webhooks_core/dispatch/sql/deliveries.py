"""Claim deliveries and write what became of them: one statement for all of a batch.

Each checks the claim: what another process has freed since stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from webhooks_core.database.clock import clock
from webhooks_core.database.statements import execute, fetch, ids, statement
from webhooks_core.models import Delivery

# DeliveryQuerySet.waiting and claimed. Statuses are in the text: with a parameter, SQLite would
# use no partial index.
_IS_PENDING = f"id {{among}} AND status = {Delivery.Status.PENDING:d}"
_IS_CLAIMED = f"{_IS_PENDING} AND claimed_by = %s"
_CLAIM = statement(
    "UPDATE webhooks_core_delivery"  # noqa: S608 - all constants
    " SET attempts = attempts + 1, claimed_by = %s, claimed_at = %s"
    f" WHERE {_IS_PENDING} AND claimed_by IS NULL"
)
_COUNT = statement(f"SELECT count(*) FROM webhooks_core_delivery WHERE {_IS_CLAIMED}")  # noqa: S608
_DELIVER = statement(
    f"UPDATE webhooks_core_delivery SET status = {Delivery.Status.DELIVERED:d},"  # noqa: S608
    f" delivered_at = %s, next_attempt_at = NULL, claimed_by = NULL WHERE {_IS_CLAIMED}"
)


def claim(pks: Collection[int], *, lease: int) -> int:
    """Claim waiting deliveries for one attempt each; return how many were still waiting."""
    return execute(_CLAIM, lease, clock.now(), ids(pks)) if pks else 0


def still_claimed(pks: Collection[int], *, lease: int) -> set[int]:
    """Return those of `pks` that this lease still claims: the fencing token's check."""
    [(count,)] = fetch(_COUNT, ids(pks), lease)
    if count == len(pks):
        # Almost always. On SQLite each row that is read may wait for the thread of the sender.
        return set(pks)
    return set(Delivery.objects.claimed(pks, lease=lease).values_list("pk", flat=True))


def deliver(pks: Collection[int], *, lease: int, at: datetime) -> None:
    """Mark claimed deliveries as delivered."""
    if pks:
        execute(_DELIVER, at, ids(pks), lease)

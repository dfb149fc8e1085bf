"""Erase all data of an owner, in short steps: dispatchers and other writers go on meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.upkeep import removal

BATCH = 200


class StaticEndpointError(Exception):
    """A configuration declares an endpoint of this owner, and would create it again."""


@dataclass(frozen=True, slots=True)
class OwnerErasure:
    """What one product has of an owner: webhooks of a profile, and rows of its own by name."""

    profile: str
    owner: str
    rows: Mapping[str, QuerySet[Any]]

    def count(self) -> dict[str, int]:
        """Return how many rows of each kind there are."""
        mine = {"profile": self.profile, "owner": self.owner}
        webhooks: dict[str, QuerySet[Any]] = {
            "endpoints": Endpoint.objects.filter(**mine),
            "events": Event.objects.filter(**mine),
            "deliveries": Delivery.objects.filter(
                event__in=Event.objects.filter(**mine)
            ),
        }
        return {name: rows.count() for name, rows in {**webhooks, **self.rows}.items()}

    def check(self) -> None:
        """Raise StaticEndpointError if a configuration declares an endpoint of the owner."""
        static = Endpoint.objects.static(self.profile).filter(owner=self.owner)
        if names := ", ".join(str(endpoint.static_key) for endpoint in static):
            raise StaticEndpointError(names)

    def erase(self) -> None:
        """Remove everything. Safe to repeat after an interruption. Raises StaticEndpointError."""
        self.check()
        removal.end_owner(profile=self.profile, owner=self.owner)
        for rows in self.rows.values():
            _delete_in_batches(rows)
        removal.remove_owner(profile=self.profile, owner=self.owner)


def _delete_in_batches(rows: QuerySet[Any]) -> None:
    ids = rows.order_by("pk").values_list("pk", flat=True)
    while pks := list(ids[:BATCH]):
        rows.filter(pk__in=pks).delete()

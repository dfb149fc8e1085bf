"""Who changed what of an endpoint, and when: each use case that a person asks for records it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import QuerySet

from webhooks_core.models import Endpoint, EndpointChange

Action = EndpointChange.Action


class Actor(NamedTuple):
    """Who does something: `kind` is of `EndpointChange.actor_kind`, `name` is for people."""

    kind: str
    name: str = ""

    @property
    def is_owner(self) -> bool:
        return self.kind == "owner"


ENGINE = Actor("engine")
RECEIVER = Actor("receiver")
COMMAND = Actor("command")
CONFIGURATION = Actor("configuration")


def owner(name: str) -> Actor:
    """Return a person or program that acts for the owner: an account, a principal."""
    return Actor("owner", name[:150])


def operator(name: str) -> Actor:
    """Return a user of the admin."""
    return Actor("operator", name[:150])


def record(
    endpoint_pk: int,
    action: Action,
    *,
    by: Actor,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record one change in the caller's transaction."""
    record_all([endpoint_pk], action, by=by, subject=subject, details=details)


def record_all(
    endpoint_pks: Iterable[int],
    action: Action,
    *,
    by: Actor,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record the same change of some endpoints."""
    EndpointChange.objects.bulk_create(
        EndpointChange(
            endpoint_id=pk,
            action=action,
            actor_kind=by.kind,
            actor=by.name,
            subject=subject,
            details=details or {},
        )
        for pk in endpoint_pks
    )


def of(endpoint: Endpoint) -> QuerySet[EndpointChange]:
    """Return the changes of an endpoint, newest first."""
    return EndpointChange.objects.filter(endpoint=endpoint).order_by("-pk")


def of_owner(profile: str, owner: str) -> QuerySet[EndpointChange]:
    """Return the changes of all endpoints of an owner, deleted ones too, newest first."""
    own = Endpoint.objects.filter(profile=profile, owner=owner)
    rows = EndpointChange.objects.filter(endpoint__in=own.values("pk"))
    rows = rows.select_related("endpoint").defer("endpoint__custom_headers")
    return rows.order_by("-pk")

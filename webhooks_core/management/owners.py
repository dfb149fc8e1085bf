"""The option --owner of commands: a tenant, a user name, or the id of an owner."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db.models import QuerySet

from webhooks_core.models import Endpoint
from webhooks_core.owners.names import named


def narrowed(endpoints: QuerySet[Endpoint], owner: str | None) -> QuerySet[Endpoint]:
    """Return the endpoints of an owner; without one, all. Raises CommandError if it has none."""
    if owner is None:
        return endpoints
    if not Endpoint.objects.filter(named(owner)).exists():
        raise CommandError(f"{owner!r} has no endpoint")
    return endpoints.filter(named(owner))

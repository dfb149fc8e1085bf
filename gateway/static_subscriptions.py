"""Static subscriptions: the configuration's list, written into the tables."""

from __future__ import annotations

import hashlib
from typing import Any

import structlog
from django.db import DatabaseError, transaction
from django.utils import timezone

from gateway import configuration
from gateway.configuration.shapes import Configuration, StaticSubscription
from gateway.webhooks import PROFILE
from webhooks_core import endpoints
from webhooks_core.changes import CONFIGURATION
from webhooks_core.database.outages import reason
from webhooks_core.models import Endpoint
from webhooks_core.secrets import SecretUnreadableError

log = structlog.stdlib.get_logger(__name__)


def sync_at_start() -> None:
    """Write the configuration into the tables; a database that is away does not stop the start."""
    try:
        sync(configuration.current())
    except DatabaseError as error:
        log.warning("static subscriptions not written", error=reason(error))


def sync(current: Configuration) -> int:
    """Make static subscriptions match the configuration; return how many changed.

    The history of a removed one stays.
    """
    wanted = {_key(entry): entry for entry in current.webhooks.subscriptions}
    with transaction.atomic():
        rows = Endpoint.objects.static(PROFILE).select_for_update().order_by("pk")
        known = {(row.owner, row.static_key): row for row in rows}
        removed = [
            endpoints.delete(known[key], by=CONFIGURATION)
            for key in known
            if key not in wanted
        ]
        updated = [_update(known[key], wanted[key]) for key in wanted if key in known]
        created = [_create(wanted[key]) for key in wanted if key not in known]
    return sum(created) + sum(updated) + sum(removed)


def _key(entry: StaticSubscription) -> tuple[str, str]:
    return entry.tenant_id, hashlib.sha256(entry.url.encode()).hexdigest()


def _create(entry: StaticSubscription) -> bool:
    """Create a subscription; False if another process was quicker."""
    return endpoints.create_static(
        profile=PROFILE,
        owner=entry.tenant_id,
        static_key=_key(entry)[1],
        secret=entry.secret,
        **_fields(entry),
    )


def _update(endpoint: Endpoint, entry: StaticSubscription) -> bool:
    if changed := endpoint.differing(_fields(entry)):
        endpoints.update(endpoint, by=CONFIGURATION, **changed)
    return _rotate(endpoint, entry) or bool(changed)


def _rotate(endpoint: Endpoint, entry: StaticSubscription) -> bool:
    """Have deliveries signed with the secret of the file; False if they are."""
    try:
        if endpoint.secrets(now=timezone.now())[:1] == [entry.secret]:
            return False
    except SecretUnreadableError:
        log.warning("secret not readable", endpoint=endpoint.public_id)
    endpoints.rotate_secret(endpoint, secret=entry.secret, by=CONFIGURATION)
    return True


def _fields(entry: StaticSubscription) -> dict[str, Any]:
    return {
        "url": entry.url,
        "event_types": list(entry.event_types),
        # The operator's file declares it: it may reach the networks that they allow.
        "trusted": True,
    }

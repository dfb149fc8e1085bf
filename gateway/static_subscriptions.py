"""Static subscriptions: the configuration's list, brought into the tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

import structlog
from django.db import transaction
from django.utils import timezone

from gateway import configuration
from gateway.configuration.shapes import Configuration, StaticSubscription
from gateway.webhooks import PROFILE
from webhooks_core import endpoints
from webhooks_core.encryption import SecretUnreadableError
from webhooks_core.models import Endpoint

log = structlog.stdlib.get_logger(__name__)

_synced: list[Configuration] = []


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a synchronisation did."""

    created: int = 0
    updated: int = 0
    removed: int = 0


def sync_once() -> None:
    """Bring the configuration into the tables, the first time that this process needs it.

    So a restart suffices, whichever process it is that was restarted.
    """
    current = configuration.current()
    if current not in _synced:
        sync(current)


def sync(current: Configuration) -> SyncReport:
    """Create, change and remove static subscriptions until they are what the file says.

    One that left the file stops receiving; its history stays.
    """
    wanted = {_key(it): it for it in current.webhooks.subscriptions}
    with transaction.atomic():
        rows = Endpoint.objects.static(PROFILE).select_for_update()
        known = {(it.owner, it.static_key): it for it in rows.order_by("pk")}
        removed = [
            endpoints.delete(it) for key, it in known.items() if key not in wanted
        ]
        updated = [
            _update(known[key], it) for key, it in wanted.items() if key in known
        ]
        created = [_create(it) for key, it in wanted.items() if key not in known]
        # Not before the commit: the caller's transaction may still fail.
        transaction.on_commit(partial(_remember, current))
    done = SyncReport(sum(created), sum(updated), sum(removed))
    if done != SyncReport():
        log.info(
            "static subscriptions", **{it: getattr(done, it) for it in done.__slots__}
        )
    return done


def _remember(current: Configuration) -> None:
    _synced[:] = [current]


def _key(it: StaticSubscription) -> tuple[str, str]:
    return it.tenant_id, hashlib.sha256(it.url.encode()).hexdigest()


def _create(it: StaticSubscription) -> bool:
    """Create a subscription; False if another process was quicker."""
    return endpoints.create_static(
        profile=PROFILE,
        owner=it.tenant_id,
        static_key=_key(it)[1],
        secret=it.secret,
        **_fields(it),
    )


def _update(endpoint: Endpoint, it: StaticSubscription) -> bool:
    changed = {
        name: value
        for name, value in _fields(it).items()
        if getattr(endpoint, name) != value
    }
    if changed:
        endpoints.update(endpoint, **changed)
    renewed = not _signs_with(endpoint, it.secret)
    if renewed:
        endpoints.rotate_secret(endpoint, secret=it.secret)
    return bool(changed) or renewed


def _fields(it: StaticSubscription) -> dict[str, object]:
    return {
        "url": it.url,
        "event_types": list(it.event_types),
        "description": it.description,
        # The operator's own file names it: it may reach the networks they allow.
        "trusted": True,
    }


def _signs_with(endpoint: Endpoint, secret: str) -> bool:
    try:
        return endpoint.secrets(now=timezone.now())[:1] == [secret]
    except SecretUnreadableError:
        return False

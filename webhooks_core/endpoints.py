"""Operations on endpoints: create, change, delete, rotate.

Products validate the input first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from webhooks_core import changes, profiles, secrets
from webhooks_core.changes import CONFIGURATION, ENGINE, Actor
from webhooks_core.conf import allowed_targets
from webhooks_core.dispatch import notify
from webhooks_core.ids import public_id
from webhooks_core.models import Delivery, Endpoint, EndpointQueue, EndpointSecret
from webhooks_core.network import custom_headers
from webhooks_core.secrets import EncryptedText
from webhooks_core.signing.schemes import standard_key

# Each of them signs every request: servers refuse a header of more than some kilobytes.
MAX_SECRETS = 10


class QuotaExceededError(Exception):
    """The owner has as many endpoints as the profile allows."""


@dataclass(frozen=True, slots=True)
class Created:
    """A new endpoint and its secret, which is shown only once."""

    endpoint: Endpoint
    secret: str


def check_url(profile: str, url: str, *, trusted: bool = False) -> None:
    """Check the URL of an endpoint; this resolves its host for up to 2 s. Raises UrlRefusedError.

    A `trusted` endpoint may lie in WEBHOOK_ALLOWED_TARGETS.
    """
    networks = allowed_targets(trusted=trusted)
    profiles.get(profile).url_policy.check(url, networks=networks)


def create(
    *,
    profile: str,
    owner: str,
    url: str,
    event_types: Sequence[str],
    secret: str | None = None,
    by: Actor = ENGINE,
    **fields: Any,
) -> Created:
    """Create an endpoint in a free slot of the owner's quota.

    Raises QuotaExceededError.
    """
    fields |= {"url": url, "event_types": list(event_types)}
    secret = secrets.checked(secret) if secret else secrets.make()
    kept = Endpoint.objects.of(profile, owner)
    while (slot := _free_slot(profile, owner)) is not None:
        endpoint = _build(profile, owner, slot=slot, **fields)
        # If not, another creation took the slot first.
        if _insert(endpoint, secret, by, unless=kept.filter(slot=slot)):
            return Created(endpoint, secret)
    raise QuotaExceededError


def create_static(
    *, profile: str, owner: str, static_key: str, secret: str, **fields: Any
) -> bool:
    """Create an endpoint that a configuration declares; it takes no slot of the quota.

    `static_key` is its name there. Returns False if this name is taken.
    """
    endpoint = _build(profile, owner, static_key=static_key, **fields)
    same = Endpoint.objects.of(profile, owner).filter(static_key=static_key)
    return _insert(endpoint, secrets.checked(secret), CONFIGURATION, unless=same)


def _build(profile: str, owner: str, **fields: Any) -> Endpoint:
    prefix = profiles.get(profile).endpoint_prefix
    return Endpoint(public_id=public_id(prefix), profile=profile, owner=owner, **fields)


def _insert(
    endpoint: Endpoint, secret: str, by: Actor, *, unless: QuerySet[Endpoint]
) -> bool:
    """Insert an endpoint with its secret and queue; return False if `unless` has a row."""
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
            EndpointSecret.objects.create(endpoint=endpoint, value=secret)
            EndpointQueue.objects.create(endpoint=endpoint)
            changes.record(endpoint.public_id, "created", by=by, **_where(endpoint))
    except IntegrityError:
        if unless.exists():
            return False
        raise
    return True


def _free_slot(profile: str, owner: str) -> int | None:
    rows = Endpoint.objects.of(profile, owner).exclude(slot=None)
    taken = set(rows.values_list("slot", flat=True))
    quota = profiles.get(profile).quota
    return next((slot for slot in range(quota) if slot not in taken), None)


def update(endpoint: Endpoint, *, by: Actor = ENGINE, **fields: Any) -> Endpoint:
    """Change fields of an endpoint; return the changed endpoint.

    Another url makes a disabled endpoint active again, with its counter at 0. Waiting deliveries
    become due at once if it receives again, and fail if `Endpoint.pending_failure` says so.
    """
    with transaction.atomic():
        locked = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        before, changed = copy(locked), locked.differing(fields)
        is_enabled = fields.get("status") == Endpoint.Status.ACTIVE
        has_new_url = fields.get("url", locked.url) != locked.url
        if locked.is_disabled and (is_enabled or has_new_url):
            fields |= {"status": Endpoint.Status.ACTIVE, "consecutive_failures": 0}
        if is_enabled or has_new_url:
            fields |= {"timeouts": 0}
        fields["updated_at"] = now = timezone.now()
        for name, value in fields.items():
            setattr(locked, name, value)
        if before.is_receiving != locked.is_receiving:
            fields |= _outage(locked, now)
        locked.save(update_fields=list(fields))
        if changed:
            _record_change(locked, changed, by)
        if failure := locked.pending_failure:
            _waiting(locked).fail(error=failure)
        if locked.is_receiving and not before.is_receiving:
            _waiting(locked).make_due()
            notify.notify_on_commit([locked.pk])
    return locked


def _outage(endpoint: Endpoint, now: datetime) -> dict[str, Any]:
    """Set the time in which events skip an endpoint: it begins or ends now."""
    if endpoint.is_receiving:
        endpoint.enabled_at = now
    else:
        endpoint.disabled_at, endpoint.enabled_at = now, None
    return {name: getattr(endpoint, name) for name in ("disabled_at", "enabled_at")}


def _record_change(endpoint: Endpoint, changed: Mapping[str, Any], by: Actor) -> None:
    """Log the names of the fields that were changed, and which host gets events from now on."""
    details = _where(endpoint) if "url" in changed else {}
    action = "changed"
    if "status" in changed:
        action = "disabled" if endpoint.is_disabled else "enabled"
    changes.record(endpoint.public_id, action, by=by, fields=sorted(changed), **details)


def _where(endpoint: Endpoint) -> dict[str, str]:
    """Return the host of an endpoint; the rest of a URL may hold a secret."""
    return {"host": urlsplit(endpoint.url).hostname or ""}


def set_custom_headers(
    endpoint: Endpoint, values: Mapping[str, str], *, by: Actor = ENGINE
) -> Endpoint:
    """Set the additional headers of every delivery. Raises HeaderError."""
    reserved = [profile.header_prefix for profile in profiles.registered()]
    headers = custom_headers.check(values, reserved=reserved)
    text = EncryptedText.encrypt(orjson.dumps(headers).decode()) if headers else None
    return update(endpoint, by=by, custom_headers=text)


def set_standard_headers(
    endpoint: Endpoint, *, wanted: bool, by: Actor = ENGINE
) -> Endpoint:
    """Set whether deliveries have the headers of Standard Webhooks beside the product's own.

    Raises SecretFormError if a secret is not of the form that they need.
    """
    if wanted:
        for secret in endpoint.secrets(now=timezone.now()):
            standard_key(secret)
    return update(endpoint, by=by, standard_headers=wanted)


def delete(endpoint: Endpoint, *, by: Actor = ENGINE) -> bool:
    """Delete an endpoint and fail what waits for it; return False if it was deleted already.

    The row is kept for the history; its slot is free again.
    """
    with transaction.atomic():
        won = Endpoint.objects.filter(pk=endpoint.pk).end(timezone.now()) == 1
        if won:
            changes.record(endpoint.public_id, "deleted", by=by)
    while _waiting(endpoint).fail_some(error="endpoint deleted"):
        pass
    return won


def may_overlap(endpoint: Endpoint) -> bool:
    """Return True if an old secret can sign beside a new one."""
    profile = profiles.find(endpoint.profile)
    return profile is not None and profile.scheme.signs_with_all


def rotate_secret(
    endpoint: Endpoint,
    *,
    overlap: timedelta = timedelta(0),
    secret: str | None = None,
    by: Actor = ENGINE,
) -> str:
    """Create a new secret and return it; the old ones sign beside it for `overlap` at most.

    There is no overlap where a request has only one signature: the old secrets end at once. Of more
    than MAX_SECRETS the oldest end.
    Raises Endpoint.DoesNotExist if the endpoint was removed with its account, and SecretFormError
    if it has the headers of Standard Webhooks and the secret is not of the form that they need.
    """
    now = timezone.now()
    secret = secrets.checked(secret) if secret else secrets.make()
    if endpoint.standard_headers:
        standard_key(secret)
    if not may_overlap(endpoint):
        overlap = timedelta(0)
    with transaction.atomic():
        # First, as a lock: of two concurrent rotations the later one ends the other's secret.
        if not Endpoint.objects.filter(pk=endpoint.pk).update(updated_at=now):
            raise Endpoint.DoesNotExist
        old = EndpointSecret.objects.filter(endpoint=endpoint)
        later = Q(expires_at=None) | Q(expires_at__gt=now + overlap)
        old.filter(later).update(expires_at=now + overlap)
        EndpointSecret.objects.create(endpoint=endpoint, value=secret)
        old.filter(expires_at__lte=now).delete()
        newest = old.order_by("-pk").values_list("pk", flat=True)[:MAX_SECRETS]
        old.exclude(pk__in=list(newest)).delete()
        hours = overlap / timedelta(hours=1)
        changes.record(endpoint.public_id, "secret rotated", by=by, overlap_h=hours)
    return secret


def _waiting(endpoint: Endpoint) -> Any:
    return Delivery.objects.waiting().filter(endpoint=endpoint)

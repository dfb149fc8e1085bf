"""What is done to endpoints: create, change, delete, rotate. Products check the input first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webhooks_core import notices, profiles
from webhooks_core.encryption import EncryptedText
from webhooks_core.formats import public_id
from webhooks_core.models import Delivery, Endpoint, EndpointQueue, EndpointSecret
from webhooks_core.network import custom_headers
from webhooks_core.profiles import NoticeKind
from webhooks_core.signing import secrets
from webhooks_core.worker import notify

# What decides which of an endpoint's deliveries may go out now.
LIMITS = ("max_in_flight", "rate_per_second", "in_order")


class QuotaExceededError(Exception):
    """The owner has as many endpoints as the profile allows."""


class LimitError(ValueError):
    """A limit that no endpoint can have; the message names it."""


@dataclass(frozen=True, slots=True)
class Created:
    """A new endpoint and its secret, which is shown this once."""

    endpoint: Endpoint
    secret: str


def create(
    *,
    profile: str,
    owner: str,
    url: str,
    event_types: Sequence[str],
    secret: str | None = None,
    **fields: Any,
) -> Created:
    """Create an endpoint in a free slot of the owner's quota.

    Raises QuotaExceededError, or LimitError.
    """
    fields = _clean(fields)
    dialect = profiles.get(profile)
    secret = secret or secrets.make()
    while (slot := _free_slot(profile, owner, dialect.quota)) is not None:
        endpoint = Endpoint(
            public_id=public_id(dialect.endpoint_prefix),
            profile=profile,
            owner=owner,
            url=url,
            event_types=list(event_types),
            slot=slot,
            **fields,
        )
        try:
            _insert(endpoint, secret)
        except IntegrityError:
            if not _is_taken(endpoint):
                raise
            continue  # another creation took the slot first
        return Created(endpoint, secret)
    raise QuotaExceededError


def create_static(
    *, profile: str, owner: str, static_key: str, secret: str, **fields: Any
) -> bool:
    """Create an endpoint that a configuration declares; it takes no slot of the quota.

    `static_key` is its name there. False if there is one of this name already.

    Raises LimitError.
    """
    fields = _clean(fields)
    endpoint = Endpoint(
        public_id=public_id(profiles.get(profile).endpoint_prefix),
        profile=profile,
        owner=owner,
        static_key=static_key,
        **fields,
    )
    same = Endpoint.objects.of(profile, owner).filter(static_key=static_key)
    try:
        _insert(endpoint, secret)
    except IntegrityError:
        if not same.exists():
            raise
        return False
    return True


def _insert(endpoint: Endpoint, secret: str) -> None:
    with transaction.atomic():
        endpoint.save(force_insert=True)
        EndpointSecret.objects.create(endpoint=endpoint, value=secret)
        EndpointQueue.objects.create(endpoint=endpoint)


def _clean(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with their limits checked. Raises LimitError."""
    cleaned = dict(fields)
    for name in fields.keys() & set(LIMITS):
        field: Any = Endpoint._meta.get_field(name)  # noqa: SLF001 - Django's own name for it
        try:
            cleaned[name] = field.clean(fields[name], None)
        except ValidationError as error:
            raise LimitError(f"{name}: {error.messages[0]}") from error
    return cleaned


def _free_slot(profile: str, owner: str, quota: int) -> int | None:
    taken = set(
        Endpoint.objects.of(profile, owner)
        .exclude(slot=None)
        .values_list("slot", flat=True)
    )
    return next((slot for slot in range(quota) if slot not in taken), None)


def _is_taken(endpoint: Endpoint) -> bool:
    return (
        Endpoint.objects.of(endpoint.profile, endpoint.owner)
        .filter(slot=endpoint.slot)
        .exists()
    )


def update(endpoint: Endpoint, **fields: Any) -> Endpoint:
    """Change fields of an endpoint; return it as it is afterwards.

    Another url makes a disabled endpoint active again, with its counter at 0. Whatever makes
    it receive again sends at once what waited; whatever ends what waits (see
    `Endpoint.ends_waiting`) ends it here. Raises LimitError.
    """
    fields = _clean(fields)
    with transaction.atomic():
        locked = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        was_receiving = locked.is_receiving
        is_enabling = fields.get("status") == Endpoint.Status.ACTIVE
        if locked.is_disabled and (
            is_enabling or fields.get("url", locked.url) != locked.url
        ):
            fields |= {"status": Endpoint.Status.ACTIVE, "consecutive_failures": 0}
            failures = locked.consecutive_failures
            notices.send(locked, NoticeKind.ENABLED, failures=failures)
        _set(locked, **fields, updated_at=timezone.now())
        if locked.ends_waiting:
            _waiting(locked).fail(error=locked.ends_waiting)
        elif locked.is_receiving and not was_receiving:
            _waiting(locked).make_due(timezone.now())
            notify.notify_on_commit([locked.pk])
        elif locked.is_receiving and not fields.keys().isdisjoint(LIMITS):
            notify.notify_on_commit([locked.pk])  # what had to wait may go out now
    return locked


def _set(endpoint: Endpoint, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(endpoint, name, value)
    endpoint.save(update_fields=list(fields))


def enable(endpoint: Endpoint) -> Endpoint:
    """Make a disabled endpoint active again, its counter at 0; what waited goes out at once."""
    return update(endpoint, status=Endpoint.Status.ACTIVE)


def pause(endpoint: Endpoint) -> Endpoint:
    """Send nothing until `resume()`; what is published meanwhile waits."""
    return update(endpoint, paused_at=timezone.now())


def resume(endpoint: Endpoint) -> Endpoint:
    """End a pause; what waited goes out at once."""
    return update(endpoint, paused_at=None)


def set_trusted(endpoint: Endpoint, *, trusted: bool) -> Endpoint:
    """Let an endpoint lie in the networks of WEBHOOK_ALLOWED_TARGETS, or no longer."""
    return update(endpoint, trusted=trusted)


def set_custom_headers(endpoint: Endpoint, values: Mapping[str, str]) -> Endpoint:
    """Have every delivery carry these headers too. Raises HeaderError."""
    reserved = [it.header_prefix for it in profiles.registered()]
    checked = custom_headers.check(values, reserved=reserved)
    sealed = EncryptedText.encrypt(orjson.dumps(checked).decode()) if checked else None
    return update(endpoint, custom_headers=sealed)


def set_standard_headers(endpoint: Endpoint, *, wanted: bool) -> Endpoint:
    """Send the headers of Standard Webhooks beside the product's own, or no longer.

    Raises ValueError when the secret is not of the form that they need.
    """
    if wanted:
        for secret in endpoint.secrets(now=timezone.now()):
            secrets.standard_key(secret)
    return update(endpoint, standard_headers=wanted)


def delete(endpoint: Endpoint) -> bool:
    """Delete an endpoint and end what waits for it; False if it was deleted already.

    The row stays for the history; its slot is free again.
    """
    now = timezone.now()
    with transaction.atomic():
        won = Endpoint.objects.filter(pk=endpoint.pk, deleted_at=None).update(
            deleted_at=now, updated_at=now, slot=None, static_key=None
        )
        _waiting(endpoint).fail(error="endpoint deleted")
    return won == 1


def may_overlap(endpoint: Endpoint) -> bool:
    """Return True if an old secret can sign beside a new one."""
    dialect = profiles.find(endpoint.profile)
    return dialect is not None and dialect.scheme.signs_with_all


def rotate_secret(
    endpoint: Endpoint, *, overlap: timedelta = timedelta(0), secret: str | None = None
) -> str:
    """Give an endpoint a new secret; the old ones sign beside it for `overlap` at most.

    Where requests carry one signature the overlap is none: the old ones end at once. Raises
    Endpoint.DoesNotExist when the endpoint went with its account.
    """
    now, secret = timezone.now(), secret or secrets.make()
    if not may_overlap(endpoint):
        overlap = timedelta(0)
    with transaction.atomic():
        # First, as a lock: of two rotations at once the later one ends the other's secret.
        if not Endpoint.objects.filter(pk=endpoint.pk).update(updated_at=now):
            raise Endpoint.DoesNotExist
        _shorten(endpoint, until=now + overlap)
        EndpointSecret.objects.create(endpoint=endpoint, value=secret)
        EndpointSecret.objects.filter(endpoint=endpoint, expires_at__lte=now).delete()
    return secret


def _shorten(endpoint: Endpoint, *, until: datetime) -> None:
    later = Q(expires_at=None) | Q(expires_at__gt=until)
    EndpointSecret.objects.filter(later, endpoint=endpoint).update(expires_at=until)


def _waiting(endpoint: Endpoint) -> Any:
    return Delivery.objects.waiting().filter(endpoint=endpoint)

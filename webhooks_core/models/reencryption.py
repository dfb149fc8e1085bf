"""All that is kept encrypted, in whichever table: to look at, and to encrypt with a new key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.apps import apps
from django.db.models import Model, QuerySet

from webhooks_core.encryption import EncryptedTextField, SecretUnreadableError
from webhooks_core.models import Endpoint, EndpointSecret

# A deleted endpoint is never sent to again: nobody needs to read its secrets.
OF_THE_LIVING: dict[type[Model], dict[str, Any]] = {
    Endpoint: {"deleted_at": None},
    EndpointSecret: {"endpoint__deleted_at": None},
}


class Reencrypted(NamedTuple):
    """What `reseal` did: values under the first key, and those that no key opens."""

    resealed: int
    unreadable: int


def columns() -> Iterator[tuple[type[Model], str]]:
    """Yield every model with a sealed field, and that field's name."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:  # noqa: SLF001 - Django's public name
            if isinstance(field, EncryptedTextField):
                yield model, field.name


def rows() -> Iterator[tuple[Model, str]]:
    """Yield every row that holds a sealed text, and the field's name."""
    for model, name in columns():
        kept: QuerySet[Model] = QuerySet(model).filter(**OF_THE_LIVING.get(model, {}))
        for row in kept.exclude(**{name: None}).only(name).order_by("pk").iterator():
            yield row, name


def unreadable() -> int:
    """Count the sealed texts that no key of WEBHOOK_SECRET_KEYS decrypts."""
    return sum(not _is_readable(row, name) for row, name in rows())


def reencrypt() -> Reencrypted:
    """Encrypt everything with the first key. What changes meanwhile is left as it becomes."""
    resealed = unreadable = 0
    for row, name in rows():
        if _is_readable(row, name):
            resealed += _reseal(row, name)
        else:
            unreadable += 1
    return Reencrypted(resealed, unreadable)


def _is_readable(row: Model, name: str) -> bool:
    try:
        getattr(row, name).decrypt()
    except SecretUnreadableError:
        return False
    return True


def _reseal(row: Model, name: str) -> int:
    old = getattr(row, name)
    same: QuerySet[Model] = QuerySet(type(row)).filter(**{"pk": row.pk, name: old})
    return same.update(**{name: old.reencrypted()})

"""The encrypted values of all tables: to check them, and to encrypt them with a new key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.apps import apps
from django.db.models import Model, QuerySet

from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.secrets import EncryptedTextField, SecretUnreadableError

# A deleted endpoint is never sent to again: its secrets need not be readable.
READABLE: dict[type[Model], dict[str, Any]] = {
    Endpoint: {"deleted_at": None},
    EndpointSecret: {"endpoint__deleted_at": None},
}


class Reencrypted(NamedTuple):
    """How many values are encrypted with the first key, and how many no key decrypts."""

    reencrypted: int
    unreadable: int


def columns() -> Iterator[tuple[type[Model], str]]:
    """Yield every model with an encrypted field, and that field's name."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:  # noqa: SLF001 - public by use
            if isinstance(field, EncryptedTextField):
                yield model, field.name


def rows() -> Iterator[tuple[Model, str]]:
    """Yield every row that holds an encrypted text, and the field's name."""
    for model, name in columns():
        stored: QuerySet[Model] = QuerySet(model).filter(**READABLE.get(model, {}))
        for row in stored.exclude(**{name: None}).only(name).order_by("pk").iterator():
            yield row, name


def unreadable() -> int:
    """Count the encrypted texts that no key of WEBHOOK_SECRET_KEYS decrypts."""
    return sum(not _is_readable(row, name) for row, name in rows())


def reencrypt() -> Reencrypted:
    """Encrypt everything with the first key, except rows that change at the same time."""
    reencrypted = unreadable = 0
    for row, name in rows():
        if _is_readable(row, name):
            reencrypted += _reencrypt(row, name)
        else:
            unreadable += 1
    return Reencrypted(reencrypted, unreadable)


def _is_readable(row: Model, name: str) -> bool:
    try:
        getattr(row, name).decrypt()
    except SecretUnreadableError:
        return False
    return True


def _reencrypt(row: Model, name: str) -> int:
    old = getattr(row, name)
    same: QuerySet[Model] = QuerySet(type(row)).filter(**{"pk": row.pk, name: old})
    return same.update(**{name: old.reencrypted()})

"""The encrypted values of all tables: to check them, and to encrypt them with a new key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from django.apps import apps
from django.db.models import Model, QuerySet

from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.secrets import (
    EncryptedText,
    EncryptedTextField,
    SecretUnreadableError,
)

# A deleted endpoint is never sent to again: its secrets need not be readable.
READABLE: dict[type[Model], dict[str, Any]] = {
    Endpoint: {"deleted_at": None},
    EndpointSecret: {"endpoint__deleted_at": None},
}


class StoredText(NamedTuple):
    """An encrypted text; `replace(old, new)` returns 0 if another text is stored meanwhile."""

    text: EncryptedText
    replace: Callable[[EncryptedText, EncryptedText], int]


def columns() -> Iterator[tuple[type[Model], str]]:
    """Yield every model with an encrypted field, and that field's name."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield model, field.name


def rows() -> Iterator[StoredText]:
    """Yield every text of an encrypted field."""
    for model, name in columns():
        stored: QuerySet[Model] = QuerySet(model).filter(**READABLE.get(model, {}))
        for row in stored.exclude(**{name: None}).only(name).order_by("pk").iterator():
            yield StoredText(getattr(row, name), partial(_replace, row, name))


# What yields encrypted texts; apps add theirs that are in no encrypted field.
sources: list[Callable[[], Iterator[StoredText]]] = [rows]


def texts() -> Iterator[StoredText]:
    """Yield every encrypted text."""
    for source in sources:
        yield from source()


def unreadable() -> int:
    """Count the encrypted texts that no key of WEBHOOK_SECRET_KEYS decrypts."""
    return sum(not _is_readable(stored.text) for stored in texts())


def reencrypt() -> tuple[int, int]:
    """Encrypt everything with the first key, except rows that change at the same time.

    Returns how many texts were encrypted, and how many no key decrypts.
    """
    reencrypted = unreadable = 0
    for stored in texts():
        if _is_readable(stored.text):
            new = EncryptedText.encrypt(stored.text.decrypt())
            reencrypted += stored.replace(stored.text, new)
        else:
            unreadable += 1
    return reencrypted, unreadable


def _is_readable(text: EncryptedText) -> bool:
    try:
        text.decrypt()
    except SecretUnreadableError:
        return False
    return True


def _replace(row: Model, name: str, old: EncryptedText, new: EncryptedText) -> int:
    same: QuerySet[Model] = QuerySet(type(row)).filter(**{"pk": row.pk, name: old})
    return same.update(**{name: new})

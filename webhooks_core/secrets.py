"""Signing secrets: made, and encrypted at rest with WEBHOOK_SECRET_KEYS."""

from __future__ import annotations

import base64
import secrets
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

PREFIX = "whsec_"
MASK = PREFIX + "•" * 8


class SecretUnreadableError(Exception):
    """None of WEBHOOK_SECRET_KEYS decrypts this secret."""


def make() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


class Sealed:
    """A text that is kept encrypted; nothing but `reveal()` shows it."""

    def __init__(self, ciphertext: str) -> None:
        self.ciphertext = ciphertext

    @classmethod
    def of(cls, text: str) -> Sealed:
        return cls(
            _box(tuple(settings.WEBHOOK_SECRET_KEYS)).encrypt(text.encode()).decode()
        )

    def reveal(self) -> str:
        """Return the text. Raises SecretUnreadableError: never the ciphertext."""
        return _decrypt(tuple(settings.WEBHOOK_SECRET_KEYS), self.ciphertext)

    def resealed(self) -> Sealed:
        """Return the same text under the first key. Raises SecretUnreadableError."""
        return Sealed.of(self.reveal())

    def __str__(self) -> str:
        return MASK

    __repr__ = __str__


@lru_cache(maxsize=4)
def _box(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


@lru_cache(maxsize=4096)
def _decrypt(keys: tuple[str, ...], ciphertext: str) -> str:
    try:
        return _box(keys).decrypt(ciphertext.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadableError from error


class SealedField(models.TextField[Any, Any]):
    """Stores a text encrypted; gives a Sealed, which decrypts only when asked to.

    Lazy, so that one unreadable secret cannot spoil a query for all others.
    """

    def from_db_value(self, value: str | None, *_: Any) -> Sealed | None:
        return None if value is None else Sealed(value)

    def to_python(self, value: Any) -> Any:
        return Sealed.of(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        sealed = self.to_python(value)
        return sealed.ciphertext if isinstance(sealed, Sealed) else sealed

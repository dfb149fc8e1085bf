"""Texts encrypted at rest with WEBHOOK_SECRET_KEYS."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.core.exceptions import ValidationError
from django.db import models

from webhooks_core.conf import webhook_settings

SEALED = "sealed:"
MASK = "whsec_" + "•" * 8


class SecretUnreadableError(Exception):
    """None of WEBHOOK_SECRET_KEYS decrypts this secret."""


class EncryptedText:
    """A text that is kept encrypted; nothing but `reveal()` shows it."""

    def __init__(self, ciphertext: str) -> None:
        self.ciphertext = ciphertext

    @classmethod
    def encrypt(cls, text: str) -> EncryptedText:
        return cls(
            _box(tuple(webhook_settings.SECRET_KEYS)).encrypt(text.encode()).decode()
        )

    def decrypt(self) -> str:
        """Return the text. Raises SecretUnreadableError: never the ciphertext."""
        return _decrypt(tuple(webhook_settings.SECRET_KEYS), self.ciphertext)

    def reencrypted(self) -> EncryptedText:
        """Return the same text under the first key. Raises SecretUnreadableError."""
        return EncryptedText.encrypt(self.decrypt())

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


class EncryptedTextField(models.TextField[Any, Any]):
    """Stores a text encrypted; gives a Sealed, which decrypts only when asked to.

    Lazy, so that one unreadable secret cannot spoil a query for all others. A dump holds the
    ciphertext, marked as such: it is of use only with WEBHOOK_SECRET_KEYS.
    """

    def from_db_value(self, value: str | None, *_: Any) -> EncryptedText | None:
        return None if value is None else EncryptedText(value)

    def value_to_string(self, obj: models.Model) -> str:
        return f"{SEALED}{self.get_prep_value(self.value_from_object(obj))}"

    def to_python(self, value: Any) -> Any:
        """Return what a dump holds. Raises ValidationError: a mask is not to become a secret."""
        if not isinstance(value, str):
            return value
        if not value.startswith(SEALED):
            raise ValidationError(
                f"not {SEALED} and a ciphertext, as dumpdata writes it"
            )
        return EncryptedText(value.removeprefix(SEALED))

    def get_prep_value(self, value: Any) -> Any:
        sealed = EncryptedText.encrypt(value) if isinstance(value, str) else value
        return sealed.ciphertext if isinstance(sealed, EncryptedText) else sealed

"""Signing secrets, and texts encrypted at rest with WEBHOOK_SECRET_KEYS."""

from __future__ import annotations

import base64
import secrets
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.core.exceptions import ValidationError
from django.db import models

from webhooks_core.conf import webhook_settings
from webhooks_core.signing.schemes import PREFIX, is_empty

DUMP_PREFIX = "encrypted:"
HIDDEN = "•" * 8
MASK = f"{PREFIX}{HIDDEN}"


def make() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def checked(secret: str) -> str:
    """Return a secret. Raises ValueError for one that every sender knows."""
    if is_empty(secret):
        raise ValueError("the secret is empty")
    return secret


class SecretUnreadableError(Exception):
    """None of WEBHOOK_SECRET_KEYS decrypts this secret."""


class EncryptedText:
    """A text that is stored encrypted; nothing but `decrypt()` shows it."""

    def __init__(self, ciphertext: str) -> None:
        self.ciphertext = ciphertext

    @classmethod
    def encrypt(cls, text: str) -> EncryptedText:
        fernet = _fernet(tuple(webhook_settings.SECRET_KEYS))
        return cls(fernet.encrypt(text.encode()).decode())

    def decrypt(self) -> str:
        """Return the text. Raises SecretUnreadableError: never the ciphertext."""
        return _decrypt(tuple(webhook_settings.SECRET_KEYS), self.ciphertext)

    def __str__(self) -> str:
        return MASK

    __repr__ = __str__


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


@lru_cache(maxsize=4096)
def _decrypt(keys: tuple[str, ...], ciphertext: str) -> str:
    try:
        return _fernet(keys).decrypt(ciphertext.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadableError from error


class EncryptedTextField(models.TextField[Any, Any]):
    """Stores a text encrypted; returns an EncryptedText, which decrypts on demand.

    Lazy, so that one unreadable secret cannot fail a query of many. A dump holds the
    ciphertext, marked as such: only WEBHOOK_SECRET_KEYS decrypt it.
    """

    def from_db_value(self, value: str | None, *_: Any) -> EncryptedText | None:
        return None if value is None else EncryptedText(value)

    def value_to_string(self, obj: models.Model) -> str:
        return f"{DUMP_PREFIX}{self.get_prep_value(self.value_from_object(obj))}"

    def to_python(self, value: Any) -> Any:
        """Read a dump. Raises ValidationError: the mask must not become a secret."""
        if not isinstance(value, str):
            return value
        if not value.startswith(DUMP_PREFIX):
            raise ValidationError(
                f"not {DUMP_PREFIX} and a ciphertext, as dumpdata writes it"
            )
        return EncryptedText(value.removeprefix(DUMP_PREFIX))

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, str):
            value = EncryptedText.encrypt(value)
        return value.ciphertext if isinstance(value, EncryptedText) else value

"""Signing secrets."""

from __future__ import annotations

import base64
import secrets

PREFIX = "whsec_"


def make() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def is_empty(secret: str) -> bool:
    """Return True if a secret holds no key: nothing, white space, or the prefix alone."""
    return secret.strip() in {"", PREFIX}


def standard_key(secret: str) -> bytes:
    """Return the key as Standard Webhooks reads a secret: `whsec_`, then base64.

    Raises ValueError for a secret that is not of that form.
    """
    if not secret.startswith(PREFIX):
        raise ValueError(f"the secret does not start with {PREFIX}")
    if is_empty(secret):
        raise ValueError("the secret is empty")
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)

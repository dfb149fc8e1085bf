"""Signing secrets."""

from __future__ import annotations

import base64
import secrets

PREFIX = "whsec_"


def make() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()

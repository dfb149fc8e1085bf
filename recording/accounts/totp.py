"""Codes of authenticator apps: time-based one-time passwords (RFC 6238). Pure functions.

Six digits, 30 seconds and SHA-1, because every app supports these.
"""

from __future__ import annotations

import base64
import secrets

from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

STEP_S = 30
DIGITS = 6
KEY_BYTES = 20
# Clocks differ, and people type slowly (RFC 6238 section 5.2).
DRIFT_STEPS = 1
ISSUER = "Signpost"


def new_secret() -> str:
    """Return a random key in base32, as people type it into an app."""
    return base64.b32encode(secrets.token_bytes(KEY_BYTES)).decode()


def _totp(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_S)  # noqa: S303 - RFC 6238


def uri(secret: str, *, account_name: str) -> str:
    """Return the otpauth address that an app reads from a QR code."""
    return _totp(secret).get_provisioning_uri(account_name, ISSUER)


def matching_step(secret: str, code: str, *, now: float) -> int | None:
    """Return the number of the 30 seconds that a code belongs to; None if it is not valid now."""
    current = int(now) // STEP_S
    for step in range(current + DRIFT_STEPS, current - DRIFT_STEPS - 1, -1):
        if bytes_eq(_totp(secret).generate(step * STEP_S), code.encode()):
            return step
    return None

"""Opaque bearer tokens: a prefix for secret scanners, 30 random characters, a checksum."""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 30
CHECKSUM_LENGTH = 6


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits


def make(prefix: str) -> str:
    """Return a new token: `prefix`, 30 random base62 characters, 6 of CRC-32."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return prefix + body + _checksum(prefix + body)


def is_well_formed(token: str, prefix: str) -> bool:
    """Return True if a token has this prefix and its checksum is right."""
    if len(token) != len(prefix) + RANDOM_LENGTH + CHECKSUM_LENGTH:
        return False
    if not (token.startswith(prefix) and token.isascii()):
        return False
    return _checksum(token[:-CHECKSUM_LENGTH]) == token[-CHECKSUM_LENGTH:]


def digest(token: str) -> str:
    """Return the SHA-256 of a token in hex, which is stored in its place.

    A fast hash is sufficient: 178 random bits cannot be guessed.
    """
    return hashlib.sha256(token.encode()).hexdigest()

"""Opaque bearer tokens: their text, and the base of the tables that keep the hash of each.

The text is a prefix for secret scanners, 30 random characters and a checksum.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from django.db import Error, models
from django.db.models import Q
from django.utils import timezone

from webhooks_core.database.outages import is_outage, reason

log = structlog.stdlib.get_logger(__name__)

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 30
CHECKSUM_LENGTH = 6
WRITE_USE_EVERY = timedelta(hours=1)


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


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits


def digest(token: str) -> str:
    """Return the SHA-256 of a token in hex, which is stored in its place.

    A fast hash is sufficient: 178 random bits cannot be guessed.
    """
    return hashlib.sha256(token.encode()).hexdigest()


class BearerToken(models.Model):
    """A bearer token; `display_prefix`, its first characters, distinguishes tokens in lists."""

    name = models.CharField(max_length=100, blank=True)
    display_prefix = models.CharField(max_length=24)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.display_prefix

    def use(self, now: datetime) -> bool:
        """Record a use, at most once an hour; return True if this call wrote it.

        A database that takes no writes, such as one whose disk is full, still answers reads.
        """
        stale = now - WRITE_USE_EVERY
        if self.last_used_at is not None and self.last_used_at > stale:
            return False
        is_stale = Q(last_used_at=None) | Q(last_used_at__lte=stale)
        manager = type(self)._default_manager
        try:
            return manager.filter(is_stale, pk=self.pk).update(last_used_at=now) == 1
        except Error as error:
            if not is_outage(error):
                raise
            log.warning("use of a token not stored", error=reason(error))
            return False


Row = TypeVar("Row", bound=BearerToken)


class BearerQuerySet(models.QuerySet[Row]):
    def revoke(self, now: datetime) -> int:
        """Revoke these; return how many were not revoked before."""
        return self.filter(revoked_at=None).update(revoked_at=now)

"""Gateway keys: creation, lookup (one query per key every few seconds), revocation."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from django.utils import timezone

from gateway import configuration
from gateway.configuration import EntryError
from gateway.identity import NAME_RULE, SCOPES, Caller, is_name
from gateway.models import GatewayKey
from webhooks_core.models import bearer

PREFIX = "gw_key_"
SHOWN_LENGTH = len(PREFIX) + 4
MAX_DAYS = 3650
# How long another process may still accept a key that was revoked here.
CACHE_S = 5.0
CACHE_SIZE = 10_000
MAX_LENGTH = 100  # of what may be a key
MAX_NAME = 100
MAX_MODELS, MAX_MODEL = 100, 128


class Miss(Enum):
    """The cache has no entry for a key."""

    MISS = "miss"


MISS = Miss.MISS


class KeyInputError(ValueError):
    """The key cannot be created; the message says why."""


@dataclass(frozen=True, slots=True)
class Created:
    """A new key and its text, which is not stored."""

    key: GatewayKey
    text: str


def create(
    *,
    days: int | None = None,
    expires_at: datetime | None = None,
    created_by: str = "",
    **fields: Any,
) -> Created:
    """Create a key. Without `days` or an end it never expires. Raises KeyInputError.

    `fields` are those of check(). `created_by` is the principal whose key creates this one.
    """
    check(days=days, expires_at=expires_at, **fields)
    text, now = bearer.make(PREFIX), timezone.now()
    scopes, models = fields.pop("scopes", None), fields.pop("models", None)
    key = GatewayKey.objects.create(
        **fields,
        display_prefix=text[:SHOWN_LENGTH],
        digest=bearer.digest(text),
        created_at=now,
        expires_at=expires_at if days is None else now + timedelta(days=days),
        scopes=_as_list(scopes),
        allowed_models=_as_list(models),
        created_by=created_by,
    )
    return Created(key, text)


def check(
    *,
    tenant: str,
    principal: str,
    name: str = "",
    days: int | None = None,
    expires_at: datetime | None = None,
    scopes: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    budget: Mapping[str, Any] | None = None,
) -> None:
    """Raise KeyInputError for a value that a key cannot have."""
    for field, value in {"tenant": tenant, "principal": principal}.items():
        if not is_name(value):
            raise KeyInputError(f"{field}: {NAME_RULE}")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise KeyInputError(f"days must be between 1 and {MAX_DAYS}")
    if expires_at is not None and expires_at <= timezone.now():
        raise KeyInputError("expires_at must be in the future")
    if len(name) > MAX_NAME or not name.isprintable():
        raise KeyInputError("the name must be at most 100 printable characters")
    _check_rights(scopes, models)
    if budget is not None:
        try:
            configuration.checked_budget({"name": "budget", **budget})
        except EntryError as error:
            raise KeyInputError(f"budget: {error}") from error


def _check_rights(scopes: Sequence[str] | None, models: Sequence[str] | None) -> None:
    """A key without any scope or model would be of no use: it is a mistake."""
    if scopes is not None and (not scopes or not {*scopes} <= {*SCOPES}):
        raise KeyInputError(f"scopes must be at least one of {', '.join(SCOPES)}")
    if models is not None and not 1 <= len(models) <= MAX_MODELS:
        raise KeyInputError(f"models must be 1 to {MAX_MODELS} names")
    for name in models or ():
        if not (0 < len(name) <= MAX_MODEL and name.isprintable()):
            text = f"a model must have 1 to {MAX_MODEL} printable characters"
            raise KeyInputError(text)


def parse_budget(words: Sequence[str]) -> dict[str, Any]:
    """Return the budget of `cost month 12.5`, not checked yet. Raises KeyInputError."""
    try:
        counts, window, limit = words
        return {"counts": counts, "window": window, "limit": float(limit)}
    except ValueError:
        text = "budget: needs what it counts, its window and its limit, a number"
        raise KeyInputError(text) from None


def _as_list(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else sorted({*names})


def revoke(pks: Sequence[int]) -> int:
    """Revoke keys by number; return how many were not revoked before."""
    revoked = GatewayKey.objects.filter(pk__in=pks).revoke(timezone.now())
    _cache.clear()
    return revoked


def revoke_all(tenant: str) -> int:
    """Revoke all keys of a tenant; return how many were not revoked before."""
    return revoke(
        list(GatewayKey.objects.filter(tenant=tenant).values_list("pk", flat=True))
    )


class _Cache:
    """The caller of a digest, or None, for CACHE_S; at most CACHE_SIZE digests."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Caller | None]] = OrderedDict()
        self._lock = threading.Lock()
        self.epoch = 0

    def get(self, digest: str) -> Caller | Miss | None:
        until, caller = self._known.get(digest, (0.0, None))
        # An expiry further ahead than CACHE_S means that the clock was set back.
        is_fresh = 0 < until - time.time() <= CACHE_S
        return caller if is_fresh else MISS

    def put(
        self, digest: str, caller: Caller | None, *, until: float, epoch: int
    ) -> None:
        """Store a caller, unless the cache was cleared since `epoch`."""
        with self._lock:
            if epoch != self.epoch:
                return  # looked up before a revocation
            self._known.pop(digest, None)
            self._known[digest] = (until, caller)
            if len(self._known) > CACHE_SIZE:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self.epoch += 1


_cache = _Cache()


def cached_caller(token: str) -> Caller | Miss | None:
    """Return the caller of a key without a query; None for an invalid key.

    MISS: the cache does not know the key, ask look_up().
    """
    digest = _digest(token) if len(token) < MAX_LENGTH else None
    return None if digest is None else _cache.get(digest)


@lru_cache(maxsize=CACHE_SIZE)
def _digest(token: str) -> str | None:
    """Return the digest of a key, None for what is none: to work it out each time takes long."""
    return bearer.digest(token) if bearer.is_well_formed(token, PREFIX) else None


def look_up(token: str) -> Caller | None:
    """Return the caller of a live key that cached_caller() does not know, or None, and cache it.

    One query; at most once an hour, a second one records the use.
    """
    now, digest, epoch = timezone.now(), bearer.digest(token), _cache.epoch
    key = GatewayKey.objects.live(now).filter(digest=digest).first()
    until = now.timestamp() + CACHE_S
    if key is None:
        _cache.put(digest, None, until=until, epoch=epoch)
        return None
    key.use(now)
    if key.expires_at is not None:
        until = min(until, key.expires_at.timestamp())
    caller = Caller(key.tenant, key.principal, key.pk, key.rights)
    _cache.put(digest, caller, until=until, epoch=epoch)
    return caller

"""How many requests an address, and a token, may send; there is no limit unless a setting has one.

A window begins at a multiple of the period, so that counting is one atomic step of the cache.
"""

from __future__ import annotations

import hashlib
import math
import time

from django.core.cache import cache
from django.http import HttpRequest
from django.utils.module_loading import import_string

from catalog.conf import option
from catalog.errors import CatalogError

PERIODS_S = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


class TooManyRequestsError(CatalogError):
    """A request above a rate; `extensions.retryAfter` has the seconds to wait."""

    code = "TOO_MANY_REQUESTS"

    def __init__(self, kind: str, rate: str, wait: int) -> None:
        number, period = rate.split("/")
        sender = "an address" if kind == "address" else "a token"
        super().__init__(
            f"Too many requests: {sender} may send {number} per {period}; "
            f"try again in {wait} s.",
            retryAfter=wait,
        )


def check(request: HttpRequest, bearer: str | None) -> None:
    """Count a request of its address, and of its token if it has one.

    Raises TooManyRequestsError.
    """
    if rate := option("CATALOG_ADDRESS_RATE"):
        address = import_string(option("CATALOG_CLIENT_ADDRESS"))(request)
        count("address", address, rate)
    if bearer and (rate := option("CATALOG_TOKEN_RATE")):
        count("token", hashlib.sha256(bearer.encode()).hexdigest(), rate)


def peer_address(request: HttpRequest) -> str:
    """Return the address of the connection."""
    return str(request.META.get("REMOTE_ADDR") or "")


def count(kind: str, name: str, rate: str) -> None:
    number, period = rate.split("/")
    length = PERIODS_S[period]
    now = time.time()
    window = int(now // length)
    key = f"catalog.rate.{kind}.{window}.{name}"
    # Of two first requests, one adds the key and both count.
    cache.add(key, 0, timeout=length)
    try:
        seen = cache.incr(key)
    except ValueError:  # the cache has dropped the key meanwhile
        return
    if seen > int(number):
        raise TooManyRequestsError(kind, rate, math.ceil((window + 1) * length - now))

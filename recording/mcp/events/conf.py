"""The settings of MCP Events, with their defaults for projects that do not set them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings


def _value(name: str, default: Any) -> Any:
    return getattr(settings, f"MCP_EVENTS_{name}", default)


def subscriptions() -> int:
    """Return how many subscriptions an account may have; 0 if none is offered."""
    most: int = _value("SUBSCRIPTIONS", 50)
    return most


def ttl() -> timedelta:
    """Return how long a subscription lives whose client suggests nothing."""
    return timedelta(seconds=_value("TTL_S", 86_400))


def max_ttl() -> timedelta:
    return timedelta(seconds=_value("MAX_TTL_S", 7 * 86_400))


def may_have_no_expiry() -> bool:
    may: bool = _value("NO_EXPIRY", False)
    return may


def trusted_callbacks() -> Sequence[str]:
    """Return the prefixes of URLs whose receivers are not asked."""
    prefixes: Sequence[str] = _value("CALLBACKS", ())
    return prefixes


def streams() -> int:
    """Return how many streams of one account a process keeps open."""
    most: int = _value("STREAMS", 50)
    return most

"""The settings of webhooks_core: the Django settings WEBHOOK_<NAME>, their units and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Generic, TypeVar, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

T = TypeVar("T")


class Setting(Generic[T]):
    """A Django setting, read at each use, so that `override_settings` takes effect at once."""

    def __init__(self, default: Callable[[], T] | None = None) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"WEBHOOK_{name}"

    def __get__(self, instance: object, owner: type) -> T:
        if hasattr(settings, self._name):
            return cast("T", getattr(settings, self._name))
        if self._default is None:
            raise ImproperlyConfigured(f"{self._name} is not set.")
        return self._default()


class WebhookSettings:
    # Fernet keys, 32 bytes in url-safe base64 each. The first encrypts, all decrypt. Required.
    SECRET_KEYS = Setting[Sequence[str]]()

    # Networks in CIDR notation, beside the public ones, that trusted endpoints may lie in.
    ALLOWED_TARGETS = Setting[Sequence[str]](tuple)

    # The HTTP proxy, `http://[user:password@]host:port`, for public receivers. Empty: none.
    PROXY_URL = Setting(str)

    # Dispatchers at work at once, in all processes. SQLite has one writer anyway.
    DISPATCHERS = Setting(lambda: 1 if connection.vendor == "sqlite" else 4)

    # Days after which events, with their deliveries and attempts, are removed.
    RETENTION_DAYS = Setting(lambda: 30)

    # The User-Agent header of every delivery.
    USER_AGENT = Setting(lambda: "Signpost")


webhook_settings = WebhookSettings()


def allowed_targets(*, trusted: bool) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks beside the public ones that an endpoint may lie in."""
    return _networks(tuple(webhook_settings.ALLOWED_TARGETS)) if trusted else ()


@lru_cache(maxsize=4)
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, texts))

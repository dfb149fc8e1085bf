"""The catalogue's settings and their defaults."""

from __future__ import annotations

from typing import Any

from django.conf import settings

DEFAULTS: dict[str, Any] = {
    "CATALOG_WRITES": "authenticated",
    "CATALOG_TOKEN_AUTHENTICATOR": "",  # empty: every write is refused
    "CATALOG_INTROSPECTION": True,
    "CATALOG_SUGGESTIONS": True,
    "CATALOG_ROW_BUDGET": 100_000,
    "CATALOG_TIME_LIMIT_S": 10,
    "CATALOG_CORS_ORIGINS": [],
}


def option(name: str) -> Any:
    """Return a setting."""
    return getattr(settings, name, DEFAULTS[name])

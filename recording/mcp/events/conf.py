"""The settings of MCP Events and their defaults, for projects that do not set them."""

from __future__ import annotations

from typing import Any

from django.conf import settings

DEFAULTS: dict[str, Any] = {
    "MCP_EVENTS_SUBSCRIPTIONS": 50,
    "MCP_EVENTS_TTL_S": 86_400,
    "MCP_EVENTS_MAX_TTL_S": 604_800,
    "MCP_EVENTS_NO_EXPIRY": False,
    "MCP_EVENTS_CALLBACKS": (),
    "MCP_EVENTS_STREAMS": 50,
}


def option(name: str) -> Any:
    """Return a setting."""
    return getattr(settings, name, DEFAULTS[name])

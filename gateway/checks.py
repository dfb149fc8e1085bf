"""The system checks of the gateway: its file, and the operator's function."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string


@checks.register
def check_configuration(**_: Any) -> list[checks.CheckMessage]:
    """Read GATEWAY_CONFIG: what is wrong with it raises ConfigurationError."""
    from gateway import configuration  # with pydantic, which few commands need

    configuration.current()
    return []


@checks.register
def check_policy(**_: Any) -> list[checks.CheckMessage]:
    """Return an error if GATEWAY_CHAT_POLICY names nothing that can be called."""
    path = settings.GATEWAY_CHAT_POLICY
    try:
        if not path or callable(import_string(path)):
            return []
        fault = "is nothing that can be called"
    except ImportError as error:
        fault = f"cannot be imported: {error}"
    return [
        checks.Error(f"GATEWAY_CHAT_POLICY: {path!r} {fault}.", id="gateway_chat.E001")
    ]

"""The system check of the gateway's file."""

from __future__ import annotations

from typing import Any

from django.core import checks


@checks.register
def check_configuration(**_: Any) -> list[checks.CheckMessage]:
    """Read GATEWAY_CONFIG: what is wrong with it raises ConfigurationError."""
    from gateway import configuration  # with pydantic, which few commands need

    configuration.current()
    return []

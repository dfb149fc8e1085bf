"""The gateway's YAML file (GATEWAY_CONFIG) as frozen dataclasses, checked to the last key."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from gateway.configuration.file import (
    ConfigurationError,
    EntryError,
    budget,
    checked_budget,
    load,
    model,
)
from gateway.configuration.shapes import Configuration

__all__ = [
    "Configuration",
    "ConfigurationError",
    "EntryError",
    "budget",
    "checked_budget",
    "current",
    "load",
    "model",
]


def current() -> Configuration:
    """Return the configuration that this process started with. Raises ConfigurationError.

    A change of the file counts from the next start.
    """
    return _loaded(settings.GATEWAY_CONFIG)


@lru_cache(maxsize=8)
def _loaded(path: str) -> Configuration:
    return load(Path(path)) if path else Configuration()

"""The gateway's YAML file (GATEWAY_CONFIG) as frozen dataclasses, checked to the last key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from gateway.configuration.file import ConfigurationError, read, schema
from gateway.configuration.shapes import Configuration

__all__ = ["Configuration", "ConfigurationError", "current", "load", "schema"]


def current() -> Configuration:
    """Return the configuration that this process started with. Raises ConfigurationError.

    A change of the file counts from the next start.
    """
    return _loaded(settings.GATEWAY_CONFIG)


@lru_cache(maxsize=8)
def _loaded(path: str) -> Configuration:
    return load(Path(path)) if path else Configuration()


def load(path: Path, *, environ: Mapping[str, str] | None = None) -> Configuration:
    """Read a file; `environ` is what `${NAME}` refers to. Raises ConfigurationError."""
    # Outside the settings, only this reads the environment: the operator chooses the names.
    return read(path, os.environ if environ is None else environ)

"""The gateway's YAML file (GATEWAY_CONFIG) as frozen dataclasses, checked to the last key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway.configuration.models import models
from gateway.configuration.shapes import (
    Allow,
    Configuration,
    ModelEntry,
    StaticSubscription,
    Target,
    Timeouts,
    WebhookSettings,
)
from gateway.configuration.webhooks import webhooks
from gateway.configuration.yaml import Faults, Value, parse, present

__all__ = [
    "Allow",
    "Configuration",
    "ConfigurationError",
    "ModelEntry",
    "StaticSubscription",
    "Target",
    "Timeouts",
    "WebhookSettings",
    "current",
    "load",
]


class ConfigurationError(ImproperlyConfigured):
    """The file is not usable; the message names file, line and key of every fault."""


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
    # The one place beside the settings that reads the environment: the names are the
    # operator's own.
    environ = os.environ if environ is None else environ
    faults = Faults(str(path))
    document = parse(path, faults)
    found = Configuration()
    if document is not None and not document.is_null:
        found = _configuration(document, environ)
    if faults:
        raise ConfigurationError(str(faults))
    return found


def _configuration(document: Value, environ: Mapping[str, str]) -> Configuration:
    parts = document.mapping(("webhooks", "models"))
    return Configuration(
        webhooks=present(
            parts, "webhooks", partial(webhooks, environ=environ), WebhookSettings()
        ),
        models=present(parts, "models", partial(models, environ=environ), ()),
    )

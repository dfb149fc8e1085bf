"""The composition root: the only package that knows all others."""

from __future__ import annotations

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers them

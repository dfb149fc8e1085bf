"""The app that configures the project; only this package imports all others."""

from __future__ import annotations

import gc
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class AdminConfig(SimpleAdminConfig):
    default_site = "config.admin_site.Site"


class ConfigConfig(AppConfig):
    name = "config"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        gc.disable()  # until all is loaded: nearly nothing of it is garbage

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers them

        gc.enable()
        gc.freeze()  # what is loaded by now stays: not to be searched for garbage again

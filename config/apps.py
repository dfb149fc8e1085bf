"""The app that configures the project; only this package imports all others."""

from __future__ import annotations

import gc

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class AdminConfig(SimpleAdminConfig):
    default_site = "config.admin_site.Site"


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers them

        gc.freeze()  # what is loaded by now stays: not to be searched for garbage again

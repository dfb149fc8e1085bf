"""Serve one contender as the whole site is served: `python -m benchmarks.catalog.serve MODULE PORT`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import django
import uvicorn
from django.conf import settings
from django.urls import path
from django.utils.module_loading import import_string

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    contender = import_module(f"benchmarks.catalog.contenders.{sys.argv[1]}")
    settings.ROOT_URLCONF = (path("graphql", contender.view),)
    application = import_string(settings.ASGI_APPLICATION)
    uvicorn.run(application, port=int(sys.argv[2]), log_config=None, access_log=False)

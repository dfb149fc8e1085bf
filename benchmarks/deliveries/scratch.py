"""The settings of the processes that the deliveries benchmark starts: nothing here is an operator's."""

from __future__ import annotations

import os
from importlib.util import find_spec

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS, Q_CLUSTER

# Every key in the broker begins with it; without it nothing starts.
Q_CLUSTER["name"] = os.environ["BENCH_NAME"]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
if os.environ.get("BENCH_PEERS"):
    Q_CLUSTER["recycle"] = 1_000_000  # as one tunes it for short tasks
    if find_spec("django_webhook"):
        INSTALLED_APPS.append("django_webhook")
        DJANGO_WEBHOOK: dict[str, object] = {"MODELS": []}

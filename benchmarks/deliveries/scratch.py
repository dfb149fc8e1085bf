"""The settings of the processes that the deliveries benchmark starts: nothing here is an operator's."""

from __future__ import annotations

import os

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER

# Every key in the broker begins with it; without it nothing starts.
Q_CLUSTER["name"] = os.environ["BENCH_NAME"]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

"""All jobs that a job process can do, by name."""

from __future__ import annotations

from benchmarks.deliveries.bare import bare_aiohttp, bare_pycurl, post_now_and_then, raw
from benchmarks.deliveries.dispatching import dispatch_all
from benchmarks.deliveries.filling import clear, fill, grow, prepare, state
from benchmarks.deliveries.peers.queueing import (
    queue_celery,
    queue_django_q,
    queue_django_webhook,
    queue_dramatiq,
)
from benchmarks.deliveries.publishing import (
    claim_cost,
    publish_cost,
    publish_many,
    publish_now_and_then,
)
from benchmarks.scale.filling import fill_deliveries, fill_endpoints
from benchmarks.scale.measuring import (
    measure_bytes,
    measure_engine,
    measure_owner_pages,
    measure_pages,
)

__all__ = [
    "bare_aiohttp",
    "bare_pycurl",
    "claim_cost",
    "clear",
    "dispatch_all",
    "fill",
    "fill_deliveries",
    "fill_endpoints",
    "grow",
    "measure_bytes",
    "measure_engine",
    "measure_owner_pages",
    "measure_pages",
    "post_now_and_then",
    "prepare",
    "publish_cost",
    "publish_many",
    "publish_now_and_then",
    "queue_celery",
    "queue_django_q",
    "queue_django_webhook",
    "queue_dramatiq",
    "raw",
    "state",
]

"""All jobs that a job process can do, by name."""

from __future__ import annotations

from benchmarks.deliveries.bare import bare_aiohttp, post_now_and_then
from benchmarks.deliveries.dispatching import dispatch_all
from benchmarks.deliveries.filling import clear, fill, prepare, state
from benchmarks.deliveries.publishing import publish_many, publish_now_and_then
from benchmarks.scale import fill_deliveries, measure

__all__ = [
    "bare_aiohttp",
    "clear",
    "dispatch_all",
    "fill",
    "fill_deliveries",
    "measure",
    "post_now_and_then",
    "prepare",
    "publish_many",
    "publish_now_and_then",
    "state",
]

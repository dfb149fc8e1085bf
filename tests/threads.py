"""Calls at the same moment, for tests of what happens to the second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Return what these calls gave, each in a thread with a database connection of its own."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait()
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [task.result() for task in [pool.submit(run, call) for call in calls]]


def at_once(count: int, call: Callable[[], Any]) -> list[Any]:
    """Return what `count` threads got from one call."""
    return together(*[call] * count)

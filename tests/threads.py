"""Calls at the same moment, for tests of what happens to the second."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connection


def at_once(count, call):
    """Return what `count` threads, each with its own connection, got from one call."""
    start = threading.Barrier(count)

    def run():
        start.wait()
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return [task.result() for task in [pool.submit(run) for _ in range(count)]]

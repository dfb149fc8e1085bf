"""Calls at the same moment, for tests of what happens to the second."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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


_WAITING = """SELECT count(*) FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'"""


def started(call: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Start a call in a thread; return when it has ended, or waits for a lock of PostgreSQL."""

    def run() -> Any:
        try:
            return call(*arguments)
        finally:
            connection.close()

    pool = ThreadPoolExecutor(1)
    task = pool.submit(run)
    pool.shutdown(wait=False)
    while not task.done() and not _is_waiting():
        time.sleep(0.01)
    return task


def _is_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # kept in a transaction
        cursor.execute(_WAITING)
        return bool(cursor.fetchone()[0])

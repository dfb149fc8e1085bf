"""The time limit of one operation, and the transactions in which its statements run.

A query of several statements reads one snapshot: REPEATABLE READ on PostgreSQL, a deferred
transaction on SQLite. At the end of the time limit the database cancels the statement itself.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from catalog.errors import TimeLimitError

Run = Callable[..., Any]
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
RENEWED_AFTER = 0.1  # of the limit: PostgreSQL measures the time of each statement anew
STEPS = 100_000  # of SQLite's virtual machine between two looks at the clock: a millisecond or two


class Deadline:
    """The time until which one operation may use the database."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ends = time.monotonic() + seconds

    @cached_property
    def connection(self) -> Any:
        """The thread's connection; Django's proxy would look it up for each attribute."""
        return connections[DEFAULT_DB_ALIAS]

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()

    def error(self) -> TimeLimitError:
        return TimeLimitError(self.seconds)

    @contextmanager
    def reading(self, *, is_single: bool = False) -> Iterator[None]:
        """Run statements that read one snapshot; within a transaction of the caller, change nothing.

        A single statement reads one snapshot by itself: it needs a transaction only if the
        session's own limit is longer than this one.
        """
        if self.connection.in_atomic_block or (
            is_single and session_limit() <= self.seconds
        ):
            yield
        elif is_single and self.connection.vendor == "sqlite":
            self.connection.ensure_connection()
            with self.limited():
                yield
        else:
            with deferred_transaction(), self.limited(SNAPSHOT):
                yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Run statements in a transaction, which is rolled back if one fails."""
        is_outermost = not self.connection.in_atomic_block
        with transaction.atomic(), self.limited() if is_outermost else nullcontext():
            yield

    def limited(self, *statements: str) -> AbstractContextManager[None]:
        """Limit the statements of the current transaction, which begins with these on PostgreSQL."""
        if self.connection.vendor == "postgresql":
            return self.limited_by_timeout(statements)
        return self.limited_by_steps()

    @contextmanager
    def limited_by_timeout(self, statements: tuple[str, ...]) -> Iterator[None]:
        granted = self.left

        def execute(*statements: str) -> None:
            timeout = f"SET LOCAL statement_timeout = {max(1, round(granted * 1000))}"
            with self.connection.cursor() as cursor:
                cursor.execute("; ".join((*statements, timeout)))

        def before(run: Run, *call: Any) -> Any:
            nonlocal granted
            self.check()
            if granted - self.left > RENEWED_AFTER * self.seconds:
                granted = self.left
                execute()
            return run(*call)

        execute(*statements)
        with self.connection.execute_wrapper(before):
            yield

    @contextmanager
    def limited_by_steps(self) -> Iterator[None]:
        def before(run: Run, *call: Any) -> Any:
            self.check()
            return run(*call)

        database = self.connection.connection
        database.set_progress_handler(lambda: self.left <= 0, STEPS)
        try:
            with self.connection.execute_wrapper(before):
                yield
        finally:
            database.set_progress_handler(None, 0)

    def check(self) -> None:
        """Raise TimeLimitError if the time has passed."""
        if self.left <= 0:
            raise self.error()


def session_limit() -> float:
    """Return the seconds after which PostgreSQL cancels a statement by the connection's options."""
    return limit_in(str(connection.settings_dict["OPTIONS"].get("options", "")))


@lru_cache
def limit_in(options: str) -> float:
    found = re.search(r"-c statement_timeout=([1-9]\d*)(?: |$)", options)
    return int(found[1]) / 1000 if found else math.inf


@contextmanager
def deferred_transaction() -> Iterator[None]:
    """A transaction that does not wait for the one writer of SQLite."""
    if connection.vendor == "postgresql":
        with transaction.atomic():
            yield
        return
    connection.ensure_connection()  # which sets the mode
    sqlite: Any = connection
    mode, sqlite.transaction_mode = sqlite.transaction_mode, "DEFERRED"
    try:
        with transaction.atomic():
            yield
    finally:
        sqlite.transaction_mode = mode

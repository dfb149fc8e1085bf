"""Counts of the errors in this process's answers, by operation and code, for monitoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock

NO_OPERATION = "none"  # the document was refused before any operation ran
MASKED = "INTERNAL_SERVER_ERROR"

Failure = tuple[str, str]


class Failures:
    """Thread-safe counts since the process started.

    An operation is a field of Query or Mutation. The names that clients give their operations
    are not counted, because a client can send any number of different names.
    """

    def __init__(self) -> None:
        self._counts: Counter[Failure] = Counter()
        self._lock = Lock()

    def add(self, failures: Iterable[Failure]) -> None:
        """Count one answer: each pair of operation and code once."""
        with self._lock:
            self._counts.update(set(failures))

    def counts(self, operations: Iterable[str]) -> dict[Failure, int]:
        """Return the counts; masked errors of these operations are included when zero."""
        with self._lock:
            return dict.fromkeys(((name, MASKED) for name in operations), 0) | dict(
                self._counts
            )


failures = Failures()

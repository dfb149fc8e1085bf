"""Counts and durations of this process's answers, by operation and code, for monitoring."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from threading import Lock

NO_OPERATION = "none"  # the document was refused before any operation ran
MASKED = "INTERNAL_SERVER_ERROR"
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

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


class Durations:
    """Thread-safe histograms since the process started.

    An operation is named by the operator's list of documents, otherwise by its first field.
    """

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self._lock = Lock()

    def add(self, operation: str, seconds: float) -> None:
        with self._lock:
            counts = self._counts.setdefault(operation, [0] * (len(BOUNDS_S) + 1))
            counts[bisect_left(BOUNDS_S, seconds)] += 1
            self._sums[operation] = self._sums.get(operation, 0) + seconds

    def histograms(self) -> dict[str, tuple[list[int], float]]:
        """Return for each operation the answers within each bound and above all, and the seconds."""
        with self._lock:
            return {
                name: (list(counts), self._sums[name])
                for name, counts in self._counts.items()
            }


failures = Failures()
durations = Durations()

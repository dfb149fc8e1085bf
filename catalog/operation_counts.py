"""Counts and durations of this process's answers, by operation and code, for monitoring.

They are in no registry: a project registers them where it collects its metrics.
"""

from __future__ import annotations

from prometheus_client import Counter, Histogram

NO_OPERATION = "none"  # the document was refused before any operation ran
MASKED = "INTERNAL_SERVER_ERROR"
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

# An operation is a field of Query or Mutation. The names that clients give their operations are
# not counted, because a client can send any number of different names.
failures = Counter(
    "signpost_graphql_errors",
    "Answers of this process with an error, by operation and code.",
    ["operation", "code"],
    registry=None,
)
# An operation is named by the operator's list of documents, otherwise by its first field.
durations = Histogram(
    "signpost_graphql_operation_duration_seconds",
    "Time of an operation in this process, without HTTP.",
    ["operation"],
    registry=None,
    buckets=BOUNDS_S,
)

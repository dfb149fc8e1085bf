"""The event types of the gateway: what each means, and what its data is."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from webhooks_core.profiles import EventType
from webhooks_core.web.json_schema import DATE_TIME, INTEGER, NUMBER, STRING, object_of

INGEST_COMPLETED = "ingest.completed"
POLICY_VIOLATION = "audit.policy_violation"
DRIFT_DETECTED = "drift.detected"
EVAL_REGRESSION = "eval.regression"
BUDGET_THRESHOLD = "budget.threshold"
# The shares of a limit that are reported, in percent.
BUDGET_SHARES = (50, 80, 100)
TEST = "webhook.test"
ENDPOINT_DISABLED, ENDPOINT_RECOVERED = "endpoint.disabled", "endpoint.recovered"


def _described(value: Any) -> dict[str, Any]:
    """Return the schema of a member by its value in the sample; a text that ends in Z is a time."""
    match value:
        case str() if value.endswith("Z"):
            return DATE_TIME
        case int():
            return INTEGER | {"minimum": 0}
        case float():
            return NUMBER
        case dict():
            return {"type": "object"}
    return STRING


def _type(
    name: str,
    description: str,
    sample: Mapping[str, Any],
    *,
    subscribable: bool = True,
    varying: Container[str] = (),
) -> EventType:
    """Return an event type; `varying` members have values of several types."""
    schema = {
        key: {} if key in varying else _described(value)
        for key, value in sample.items()
    }
    return EventType(name, description, sample, object_of(**schema), subscribable)


SUBSCRIPTION_ID = "whsub_0d1k3v5m7p9r1t3v5n7q9s0u2g"
NAMED_ONLY = "Sent only to subscriptions that name it."
DISABLED = {
    "subscription_id": SUBSCRIPTION_ID,
    "url": "https://hooks.example.com/gateway",
    "since": "2026-11-21T03:20:00.000000Z",
    "attempts": 12,
    "error": "HTTP 500",
    "message": "Disabled for 10 min: nothing is sent. 12 failed attempts (all: HTTP 500). No "
    "success yet. 3 deliveries are waiting.",
}
RECOVERED = DISABLED | {
    "attempts": 0,
    "error": None,
    "message": "Healthy: Last success 1 s ago.",
}
OPTIONAL = ("since", "error")

_EVENT_TYPES = (
    _type(
        INGEST_COMPLETED,
        "A document finished ingesting.",
        {
            "document_id": "doc_0d1k3v5m7p9r1t3v5n7q9s0u2g",
            "title": "Harbour regulations",
            "content_type": "text/markdown",
            "checksum": "sha256:" + 8 * "9f86d081",
            "size_bytes": 5210,
            "characters": 5188,
            "metadata": {"source": "intranet"},
            "created_at": "2026-11-21T03:20:00.000000Z",
        },
    ),
    _type(
        POLICY_VIOLATION,
        "A policy decision denied an action.",
        {
            "decision_id": "pol_0d1k3v5m7p9r1t3v5n7q9s0u2g",
            "decision": "denied",
            "principal_id": "ada",
            "action": "chat.completions",
            "resource": "model:large",
            "reason": "not_found_or_forbidden",
            "decided_at": "2026-11-21T03:20:00.000000Z",
        },
    ),
    _type(
        DRIFT_DETECTED,
        "Embedding or data drift was detected.",
        {
            "subject": "embeddings:small",
            "metric": "population_stability_index",
            "value": 0.31,
            "threshold": 0.2,
        },
    ),
    _type(
        EVAL_REGRESSION,
        "An evaluation run regressed.",
        {"run_id": "run_481", "suite": "answers", "score": 0.81, "baseline": 0.87},
    ),
    _type(
        BUDGET_THRESHOLD,
        f"A budget has reached 50, 80 or 100 % of its limit. {NAMED_ONLY}",
        {
            "budget": "acme-monthly",
            "subject": "tenant acme",
            "counts": "cost",
            "window": "month",
            "percent": 80,
            "limit": "500.000000000",
            "used": "400.125000000",
            "resets_at": "2026-12-01T00:00:00.000000Z",
        },
        varying=("limit", "used"),
    ),
    _type(
        TEST,
        "Test event; sent only through the test endpoint.",
        {"subscription_id": SUBSCRIPTION_ID},
        subscribable=False,
    ),
    _type(
        ENDPOINT_DISABLED,
        f"A subscription is disabled after too many failures. {NAMED_ONLY}",
        DISABLED,
        varying=OPTIONAL,
    ),
    _type(
        ENDPOINT_RECOVERED,
        f"A subscription works again. {NAMED_ONLY}",
        RECOVERED,
        varying=OPTIONAL,
    ),
)
OPERATIONAL = {BUDGET_THRESHOLD, ENDPOINT_DISABLED, ENDPOINT_RECOVERED}
EVENT_TYPES = {event_type.name: event_type for event_type in _EVENT_TYPES}
# Those of the contract that subscriptions may name.
SUBSCRIBABLE = [name for name, kind in EVENT_TYPES.items() if kind.subscribable]
# Those that a configuration may let callers publish.
PUBLISHABLE = [name for name in SUBSCRIBABLE if name not in OPERATIONAL]

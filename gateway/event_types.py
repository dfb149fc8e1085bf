"""The event types of the gateway: what each means, and what its data is."""

from __future__ import annotations

from webhooks_core.profiles import EventType
from webhooks_core.web.json_schema import (
    DATE_TIME,
    INTEGER,
    NUMBER,
    described,
    object_of,
)

INGEST_COMPLETED = "ingest.completed"
POLICY_VIOLATION = "audit.policy_violation"
DRIFT_DETECTED = "drift.detected"
EVAL_REGRESSION = "eval.regression"
BUDGET_THRESHOLD = "budget.threshold"
# The shares of a limit that are reported, in percent.
BUDGET_SHARES = (50, 80, 100)
TEST = "webhook.test"

COUNT = INTEGER | {"minimum": 0}
AMOUNT = {"oneOf": [COUNT, {"type": "string"}]}
ENDPOINT_STATE = object_of(
    subscription_id=described("The subscription."),
    url=described("Where it is sent."),
    since=described(
        "UTC: when the state began.", DATE_TIME | {"type": ["string", "null"]}
    ),
    attempts=described("Failed ones since the last success.", COUNT),
    error=described("The latest failure.", {"type": ["string", "null"]}),
    message=described("All of it, as a sentence."),
)


_FAILED = (
    "12 failed attempts (all: HTTP 500). No success yet. 3 deliveries are waiting."
)
OPERATIONAL_EVENTS = (
    (
        *("disabled", "A subscription is disabled after too many failures.", 12),
        f"Disabled for 10 min: nothing is sent. {_FAILED}",
    ),
    (
        *("recovered", "A subscription works again.", 0),
        "Healthy: Last success 1 s ago.",
    ),
)

_EVENT_TYPES = (
    EventType(
        INGEST_COMPLETED,
        "A document finished ingesting.",
        schema=object_of(
            document_id=described("The id of the document."),
            title=described("As it was sent."),
            content_type=described("The media type of the text."),
            checksum=described("`sha256:` and hex."),
            size_bytes=described("Of the text in UTF-8.", COUNT),
            characters=described("Of the text.", COUNT),
            metadata=described("As it was sent.", {"type": "object"}),
            created_at=described("UTC: the first time it was sent.", DATE_TIME),
        ),
        sample={
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
    EventType(
        POLICY_VIOLATION,
        "A policy decision denied an action.",
        schema=object_of(
            decision_id=described("The id of the decision."),
            decision=described("Always `denied`.", {"const": "denied"}),
            principal_id=described("Who asked."),
            action=described("What was asked for."),
            resource=described("On what."),
            reason=described("Why it was denied, for programs."),
            decided_at=described("UTC.", DATE_TIME),
        ),
        sample={
            "decision_id": "pol_0d1k3v5m7p9r1t3v5n7q9s0u2g",
            "decision": "denied",
            "principal_id": "ada",
            "action": "chat.completions",
            "resource": "model:large",
            "reason": "not_found_or_forbidden",
            "decided_at": "2026-11-21T03:20:00.000000Z",
        },
    ),
    EventType(
        DRIFT_DETECTED,
        "Embedding or data drift was detected.",
        schema=object_of(
            subject=described("What drifted."),
            metric=described("How it was measured."),
            value=described("The measured value.", NUMBER),
            threshold=described("The value that it exceeded.", NUMBER),
        ),
        sample={
            "subject": "embeddings:small",
            "metric": "population_stability_index",
            "value": 0.31,
            "threshold": 0.2,
        },
    ),
    EventType(
        EVAL_REGRESSION,
        "An evaluation run regressed.",
        schema=object_of(
            run_id=described("The id of the run."),
            suite=described("What was evaluated."),
            score=described("The score of this run.", NUMBER),
            baseline=described("The score that it fell below.", NUMBER),
        ),
        sample={
            "run_id": "run_481",
            "suite": "answers",
            "score": 0.81,
            "baseline": 0.87,
        },
    ),
    EventType(
        BUDGET_THRESHOLD,
        "A budget has reached 50, 80 or 100 % of its limit. "
        "Sent only to subscriptions that name it.",
        schema=object_of(
            budget=described("The name of the budget."),
            subject=described("Whose counter it is."),
            counts=described("`requests`, `tokens` or `cost`."),
            window=described("`minute`, `hour`, `day`, `week` or `month`, in UTC."),
            percent=described(
                "The share that was reached.", {"enum": [*BUDGET_SHARES]}
            ),
            limit=described("A decimal text for costs.", AMOUNT),
            used=described("As the limit.", AMOUNT),
            resets_at=described("UTC: when the window starts again.", DATE_TIME),
        ),
        sample={
            "budget": "acme-monthly",
            "subject": "tenant acme",
            "counts": "cost",
            "window": "month",
            "percent": 80,
            "limit": "500.000000000",
            "used": "400.125000000",
            "resets_at": "2026-12-01T00:00:00.000000Z",
        },
    ),
    EventType(
        TEST,
        "Test event; sent only through the test endpoint.",
        schema=object_of(subscription_id=described("The tested subscription.")),
        sample={"subscription_id": "whsub_0d1k3v5m7p9r1t3v5n7q9s0u2g"},
        subscribable=False,
    ),
    *(
        EventType(
            f"endpoint.{name}",
            f"{text} Sent only to subscriptions that name it.",
            schema=ENDPOINT_STATE,
            sample={
                "subscription_id": "whsub_0d1k3v5m7p9r1t3v5n7q9s0u2g",
                "url": "https://hooks.example.com/gateway",
                "since": "2026-11-21T03:20:00.000000Z",
                "attempts": attempts,
                "error": "HTTP 500" if attempts else None,
                "message": message,
            },
        )
        for name, text, attempts, message in OPERATIONAL_EVENTS
    ),
)
OPERATIONAL = {
    BUDGET_THRESHOLD,
    *(f"endpoint.{name}" for name, *_ in OPERATIONAL_EVENTS),
}
EVENT_TYPES = {event_type.name: event_type for event_type in _EVENT_TYPES}
# Those of the contract that subscriptions may name.
SUBSCRIBABLE = [name for name, kind in EVENT_TYPES.items() if kind.subscribable]
# Those that a configuration may let callers publish.
PUBLISHABLE = [name for name in SUBSCRIBABLE if name not in OPERATIONAL]

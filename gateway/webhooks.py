"""The gateway's webhook profile: event types, envelope, headers, limits."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from gateway.identity import SYSTEM
from gateway.trace_ids import trace_id
from webhooks_core import profiles
from webhooks_core.dispatch.retry import RetryPolicy
from webhooks_core.network.url_policy import UrlPolicy, own_listener
from webhooks_core.profiles import (
    EventContext,
    EventType,
    Notice,
    PingEvent,
    SigningContext,
    WebhookProfile,
)
from webhooks_core.web.json_schema import (
    DATE_TIME,
    INTEGER,
    NUMBER,
    described,
    object_of,
)

if TYPE_CHECKING:  # the configuration needs the event types
    from gateway.configuration.shapes import DeclaredEventType, WebhookSettings

PROFILE = "gateway"
INGEST_COMPLETED = "ingest.completed"
POLICY_VIOLATION = "audit.policy_violation"
DRIFT_DETECTED = "drift.detected"
EVAL_REGRESSION = "eval.regression"
BUDGET_THRESHOLD = "budget.threshold"
# The lists of the admin with what a tenant has beside its webhooks.
OWNER_LISTS = {
    "Keys": "gateway_gatewaykey",
    "Portal links": "gateway_portallink",
    "Documents": "gateway_document",
    "Policy decisions": "gateway_policydecision",
    "Usage by day": "gateway_chat_usageday",
}
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


_FAILS = (
    "Fails since 03:20:00 UTC: 12 attempts, all HTTP 500. Last success: never. 3 wait."
)
OPERATIONAL_EVENTS = (
    (
        *("disabled", "A subscription is disabled after too many failures.", 12),
        f"Disabled since 03:20:00 UTC: nothing is sent. {_FAILS}",
    ),
    ("recovered", "A subscription works again.", 0, "Delivers. 0 wait."),
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


def subscribable() -> list[str]:
    """Return the event types that subscriptions may name: the contract's and the declared ones."""
    known = profiles.find(PROFILE)
    kinds = known.event_types.values() if known else EVENT_TYPES.values()
    return [kind.name for kind in kinds if kind.subscribable]


def declared(event_type: DeclaredEventType) -> EventType:
    """Return an event type of the configuration file."""
    return EventType(event_type.name, event_type.description, event_type.sample)


def matches(event_types: Sequence[str], event_type: str) -> bool:
    """Return True if a subscription receives a type.

    An empty list means all but the test and the operational events.
    """
    if not event_types:
        return event_type != TEST and event_type not in OPERATIONAL
    return event_type != TEST and event_type in event_types


def envelope(event: EventContext) -> dict[str, Any]:
    """Return the body of a delivery (gateway, "Webhook event envelope")."""
    return {
        "id": event.id,
        "type": event.type,
        "tenant_id": event.owner,
        "created_at": event.created_at,
        "data": event.data,
        "request_id": event.metadata["request_id"],
        "principal_id": event.metadata["principal_id"],
        "trace_id": event.metadata["trace_id"],
    }


def headers(context: SigningContext) -> dict[str, str]:
    """Return the headers of one attempt beside its signature (gateway, "Delivery headers")."""
    return {
        "X-Gateway-Timestamp": str(context.timestamp),
        "X-Gateway-Event": context.event_type,
        "X-Gateway-Delivery": context.event_id,
    }


def ping(subscription_id: str) -> PingEvent:
    """Return the test event that an operator sends, who is no principal of the tenant."""
    metadata = {
        "request_id": secrets.token_hex(16),
        "principal_id": SYSTEM,
        "trace_id": trace_id(None),
    }
    return PingEvent(TEST, {"subscription_id": subscription_id}, metadata)


def url_policy(*, base_url: str, local: bool) -> UrlPolicy:
    """Return the rule for subscription URLs: public hosts, and loopback locally."""
    schemes = frozenset({"http", "https"})
    return UrlPolicy(
        schemes=schemes,
        local_schemes=schemes if local else frozenset(),
        own=own_listener(base_url),
    )


def on_notice(notice: Notice) -> None:
    """Alert the tenant."""
    from gateway import alerts  # needs the models, which are not loaded yet

    alerts.on_notice(notice)


def owner_lists(tenant: str) -> Mapping[str, str]:
    """Return where the admin lists what a tenant has beside its webhooks, by name."""
    query = urlencode({"q": tenant})
    return {
        name: f"{reverse(f'admin:{page}_changelist')}?{query}"
        for name, page in OWNER_LISTS.items()
    }


def profile(
    configured: WebhookSettings, *, quota: int, base_url: str, local: bool, source: str
) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers; `source` is the configuration's path."""
    return WebhookProfile(
        name=PROFILE,
        event_types=EVENT_TYPES
        | {kind.name: declared(kind) for kind in configured.event_types},
        matches=matches,
        envelope=envelope,
        signature_scheme="timestamped",
        header_prefix="X-Gateway",
        headers=headers,
        retry=RetryPolicy.exponential(
            base=configured.base_backoff_s,
            cap=configured.max_backoff_s,
            max_attempts=configured.max_attempts,
        ),
        timeout_s=configured.timeout_s,
        url_policy=url_policy(base_url=base_url, local=local),
        quota=quota,
        endpoint_prefix="whsub_",
        inactive_fails_pending=True,
        enabled=configured.enabled,
        receiver_control=configured.receiver_control,
        ping=ping,
        on_notice=on_notice,
        owner_lists=owner_lists,
        sample_metadata={
            "request_id": "5f0c7a52e1d84b0f9d5c8f6a3b2e1d07",
            "principal_id": "ada",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        },
        static_source=f"webhooks.subscriptions of {source} (GATEWAY_CONFIG)",
    )

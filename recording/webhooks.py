"""Recording's webhook dialect on one page: event types, envelope, headers, retries, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recording import owners
from webhooks_core.api.json_schema import STRING
from webhooks_core.network.url_policy import UrlPolicy, own_listener
from webhooks_core.profiles import (
    EventContext,
    EventType,
    PingEvent,
    SigningContext,
    WebhookProfile,
)
from webhooks_core.retry import RetryPolicy

PROFILE = "recording"
SUMMARY_COMPLETED = "summary.completed"
PING = "webhook.ping"

SEGMENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["speaker", "start", "end", "text"],
    "properties": {
        "speaker": STRING,
        "start": {"type": "number", "description": "Seconds."},
        "end": {"type": "number", "description": "Seconds."},
        "text": STRING,
    },
}
TRANSCRIPT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["text", "truncated"],
    "properties": {
        "language": STRING,
        "text": STRING,
        "truncated": {
            "type": "boolean",
            "description": "True when `text` was cut to keep the payload near 1 MiB.",
        },
        "segments": {"type": "array", "items": SEGMENT_SCHEMA},
    },
}
SUMMARY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["label", "content", "format"],
    "properties": {
        "label": STRING,
        "content": STRING,
        "format": {
            "type": "string",
            "description": "`markdown` or `html`; tolerate others.",
        },
        "template_name": STRING,
    },
}
SUMMARY_COMPLETED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["audio_id"],
    "properties": {
        "audio_id": {"type": "string", "description": "Recording id."},
        "report_id": {
            "type": "string",
            "description": "Summary report id; absent for auto-analyzed recordings.",
        },
        "status": {"type": "integer", "description": "Processing status."},
        "title": {"type": "string", "description": "Recording title."},
        "duration_ms": {"type": "integer", "description": "Milliseconds."},
        "recorded_at": {"type": "string", "description": "ISO 8601."},
        "transcript": TRANSCRIPT_SCHEMA,
        "summaries": {"type": "array", "items": SUMMARY_SCHEMA},
    },
}
SUMMARY_COMPLETED_SAMPLE: dict[str, Any] = {
    "audio_id": "aud_2481",
    "report_id": "rep_1107",
    "status": 3,
    "title": "Weekly planning",
    "duration_ms": 1_834_000,
    "recorded_at": "2026-11-20T09:30:00Z",
    "transcript": {
        "language": "en",
        "text": "Good morning. Shall we begin with the harbour project?",
        "truncated": False,
        "segments": [
            {"speaker": "Ada", "start": 0.0, "end": 1.2, "text": "Good morning."},
            {
                "speaker": "Ben",
                "start": 1.6,
                "end": 4.1,
                "text": "Shall we begin with the harbour project?",
            },
        ],
    },
    "summaries": [
        {
            "label": "Summary",
            "content": "## Harbour project\n\n- Ada asks for a quote until Friday.",
            "format": "markdown",
            "template_name": "Meeting notes",
        }
    ],
}

EVENT_TYPES: Mapping[str, EventType] = {
    event_type.name: event_type
    for event_type in (
        EventType(
            SUMMARY_COMPLETED,
            "A summary record is ready.",
            sample=SUMMARY_COMPLETED_SAMPLE,
            schema=SUMMARY_COMPLETED_SCHEMA,
        ),
        EventType(
            PING,
            "Test event; sent only through the test endpoint.",
            sample={"endpoint_id": "ep_0d1k3v5m7p9r1t3v5n7q9s0u2g"},
            schema={
                "type": "object",
                "required": ["endpoint_id"],
                "properties": {"endpoint_id": STRING},
            },
        ),
    )
}


def receives(event_types: Sequence[str], event_type: str) -> bool:
    """Tell whether an endpoint's list names a type; an empty list receives nothing.

    A listed ping changes nothing: it goes to the endpoint that is tested, by publish_test().
    """
    return event_type in event_types and event_type != PING


def envelope(happening: EventContext) -> dict[str, Any]:
    """Return the body of a delivery (recording, "Event envelope")."""
    return {
        "id": happening.id,
        "type": happening.type,
        "created_at": happening.created_at,
        "data": happening.data,
    }


def headers(sending: SigningContext) -> dict[str, str]:
    """Return the headers of one attempt beside its signature's (recording, "Receiving an event")."""
    return {
        "Content-Type": "application/json",
        "X-Recording-Event": sending.event_type,
        "X-Recording-Delivery": sending.delivery_id,
    }


def ping(endpoint_id: str) -> PingEvent:
    """Return the test event for an endpoint."""
    return PingEvent(PING, {"endpoint_id": endpoint_id})


def url_policy(*, base_url: str, local: bool) -> UrlPolicy:
    """Return the rule for subscription URLs: public https, and loopback http locally."""
    return UrlPolicy(
        schemes=frozenset({"https"}),
        local_schemes=frozenset({"http"} if local else ()),
        own=own_listener(base_url),
    )


def profile(*, base_url: str, local: bool) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    return WebhookProfile(
        name=PROFILE,
        event_types=EVENT_TYPES,
        matches=receives,
        envelope=envelope,
        # The newest secret alone signs: a rotation takes effect at once.
        signature_scheme="sha256",
        header_prefix="X-Recording",
        headers=headers,
        retry=RetryPolicy(delays=(60, 300, 900, 900, 900), jitter=0.1),
        timeout_s=5,
        url_policy=url_policy(base_url=base_url, local=local),
        quota=5,
        endpoint_prefix="ep_",
        event_prefix="evt_",
        delivery_prefix="dlv_",
        disable_after=20,
        ping=ping,
        describe_owners=owners.describe,
    )

"""Recording's webhook profile: event types, headers, retries, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recording.accounts import owners
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import (
    EventType,
    Notice,
    RetryPolicy,
    SigningContext,
    WebhookProfile,
)
from webhooks_core.web.json_schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    array_of,
    described,
    object_of,
)

PROFILE = "recording"
# Of the subscriptions of MCP Events, whose deliveries are of the same events.
EVENTS_PROFILE = "mcp_events"
SUMMARY_COMPLETED = "summary.completed"
PING = "webhook.ping"

SEGMENT_SCHEMA = object_of(
    speaker=described("Who speaks."),
    start=described("Seconds.", NUMBER),
    end=described("Seconds.", NUMBER),
    text=described("What is said."),
)
TRANSCRIPT_SCHEMA = object_of(
    ["text", "truncated"],
    language=described("A language tag."),
    text=described("The whole transcript, without speakers and times."),
    truncated=described(
        "True when `text` was cut to keep the payload near 1 MiB.", BOOLEAN
    ),
    segments=described(
        "Absent where they were removed to keep the payload near 1 MiB.",
        array_of(SEGMENT_SCHEMA),
    ),
)
SUMMARY_SCHEMA = object_of(
    ["label", "content", "format"],
    label=described("The name of the summary."),
    content=described("The text of the summary."),
    format=described("`markdown` or `html`; tolerate others."),
    template_name=described("The template that made it."),
)
SUMMARY_COMPLETED_SCHEMA = object_of(
    ["audio_id"],
    audio_id=described("Recording id."),
    report_id=described("Summary report id; absent for auto-analyzed recordings."),
    status=described("Processing status.", INTEGER),
    title=described("Recording title."),
    duration_ms=described("Milliseconds.", INTEGER),
    recorded_at=described("ISO 8601."),
    transcript=described("What was said.", TRANSCRIPT_SCHEMA),
    summaries=described("The summaries, never cut.", array_of(SUMMARY_SCHEMA)),
)
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
            schema=object_of(endpoint_id=described("The tested subscription.")),
        ),
    )
}


def matches(event_types: Sequence[str], event_type: str) -> bool:
    """Return True if an endpoint's list names a type; an empty list receives nothing.

    A listed ping has no effect: publish_test() sends it to the tested endpoint alone.
    """
    return event_type in event_types and event_type != PING


def headers(context: SigningContext) -> dict[str, str]:
    """Return an attempt's headers without the signature's (recording, "Receiving an event")."""
    return {
        "X-Recording-Event": context.event_type,
        "X-Recording-Delivery": context.delivery_id,
    }


def on_notice(notice: Notice) -> None:
    """Alert the account."""
    from recording import alerts  # needs the models, which are not loaded yet

    alerts.on_notice(notice)


def profile(*, base_url: str, local: bool) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    return WebhookProfile(
        name=PROFILE,
        event_types=EVENT_TYPES,
        matches=matches,
        # The newest secret alone signs: a rotation takes effect at once.
        signature_scheme="sha256",
        header_prefix="X-Recording",
        headers=headers,
        retry=RetryPolicy(delays=(60, 300, 900, 900, 900), jitter=0.1),
        timeout_s=5,
        url_policy=UrlPolicy.public_https(base_url, local=local),
        quota=5,
        endpoint_prefix="ep_",
        event_prefix="evt_",
        delivery_prefix="dlv_",
        disable_after=20,
        on_notice=on_notice,
        names_of=owners.names_of,
        owner_named=owners.named,
    )

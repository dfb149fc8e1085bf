"""The events that the products send, in the OpenAPI document."""

from __future__ import annotations

from typing import Any

import orjson

from webhooks_core import profiles
from webhooks_core.profiles import (
    EventContext,
    EventType,
    SigningContext,
    WebhookProfile,
)
from webhooks_core.web.json_schema import DATE_TIME, STRING, described, object_of

SAMPLE_ID = "0d1k3v5m9a2c4e6g8i0k2m4o6q"
SAMPLE_OWNER = "acme"
SAMPLE_TIME = "2026-11-21T03:20:00.000000Z"
SAMPLE_TIMESTAMP = 1_795_231_200  # the same
SAMPLE_SECRET = "whsec_c2FtcGxl"  # noqa: S105 - for the document's examples

Shape = dict[str, Any]
MEMBERS = {
    "id": "The same in every delivery of the event.",
    "type": "What happened.",
    "created_at": "UTC: when the event was published.",
    "data": "What the event type defines.",
}
CAUSE = "Of the request that caused the event."
# By the end of their names.
HEADERS = {
    "Event": "The `type` of the event.",
    "Delivery": "The same in every retry: for de-duplication.",
    "Timestamp": "Unix time of this attempt, in seconds.",
}


def add_webhooks(result: Shape, **_: Any) -> Shape:
    """Add the events of the registered profiles to the document (a drf-spectacular hook).

    A profile that prepares what it sends describes it elsewhere.
    """
    webhooks: Shape = {}
    for profile in profiles.registered():
        if profile.prepare is not None:
            continue
        for event_type in profile.event_types.values():
            is_taken = event_type.name in webhooks
            name = f"{profile.name}.{event_type.name}" if is_taken else event_type.name
            webhooks[name] = {"post": _delivery(profile, event_type)}
    return result | {"webhooks": webhooks}


def _delivery(profile: WebhookProfile, event_type: EventType) -> Shape:
    envelope = profile.envelope(
        EventContext(
            id=f"{profile.event_prefix}{SAMPLE_ID}",
            type=event_type.name,
            owner=SAMPLE_OWNER,
            created_at=SAMPLE_TIME,
            data=event_type.sample,
            metadata=profile.sample_metadata,
        )
    )
    schemas: Shape = {
        "type": {"const": event_type.name},
        "created_at": DATE_TIME,
        "data": {"type": "object", **event_type.schema},
    }
    schema = object_of(
        **{
            name: described(MEMBERS.get(name, CAUSE), schemas.get(name, STRING))
            for name in envelope
        }
    )
    media = {"schema": schema, "examples": {"Event": {"value": envelope}}}
    return {
        "summary": event_type.description,
        "description": "Sent to the subscribed url, at least once. Answer 2xx.",
        "tags": [f"{profile.name.title()} webhooks"],
        "parameters": _headers(profile, event_type, envelope),
        "requestBody": {"content": {"application/json": media}, "required": True},
        "responses": {"2XX": {"description": "Received."}},
    }


def _headers(
    profile: WebhookProfile, event_type: EventType, envelope: Shape
) -> list[Shape]:
    """Describe the headers of a delivery by an example."""
    context = SigningContext(
        event_id=f"{profile.event_prefix}{SAMPLE_ID}",
        event_type=event_type.name,
        delivery_id=f"{profile.delivery_prefix}{SAMPLE_ID}",
        timestamp=SAMPLE_TIMESTAMP,
        body=orjson.dumps(envelope),
        secrets=[SAMPLE_SECRET],
    )
    signature = {profile.signature_header: profile.scheme.description}
    return [
        {
            "name": name,
            "in": "header",
            "required": True,
            "schema": STRING,
            "example": value,
            "description": signature.get(name)
            or HEADERS.get(name.rpartition("-")[2], "Of this delivery."),
        }
        for name, value in profile.delivery_headers(context).items()
        if name.lower() != "content-type"  # the request body says it
    ]

"""Examples of what owners ask and get, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

TIME = "2026-11-21T03:20:00.000000Z"
SAMPLE_ID = "0d1k3v5m9a2c4e6g8i0k2m4o6q"
LATER = "2026-11-21T04:20:00.000000Z"


def request_example(value: Any) -> OpenApiExample:
    """Return the example of a request for the OpenAPI document."""
    return OpenApiExample("request", value, request_only=True)


def response_example(value: Any) -> OpenApiExample:
    """Return the example of a response for the OpenAPI document."""
    return OpenApiExample(
        "response", value, response_only=True, status_codes=["200", "201", "202"]
    )


DETAILS: dict[str, Any] = {
    "trigger": "event",
    "next_attempt_at": None,
    "waits": "",
    "resent": None,
    "event": {
        "id": f"evt_{SAMPLE_ID}",
        "type": "summary.completed",
        "created_at": TIME,
        "payload": '{"id": "evt_…"}',
    },
    "attempts": [
        {
            "number": 1,
            "trigger": "scheduled",
            "started_at": TIME,
            "duration_ms": 38,
            "url": "https://hooks.example.com/signpost",
            "request_headers": {"Content-Type": "application/json"},
            "response_status": 204,
            "response_headers": {"Date": "Sat, 21 Nov 2026 03:20:00 GMT"},
            "response_text": "",
            "error_class": "",
            "error": "",
        }
    ],
    "sensitive": [],
}
STORED_EVENT: dict[str, Any] = {
    "id": f"evt_{SAMPLE_ID}",
    "type": "summary.completed",
    "created_at": TIME,
    "size": 431,
    "endpoints": [
        {
            "endpoint_id": f"ep_{SAMPLE_ID}",
            "outcome": "delivered",
            "delivery_id": f"dlv_{SAMPLE_ID}",
        }
    ],
}
CHANGE: dict[str, Any] = {
    "at": TIME,
    "action": "resent",
    "actor_kind": "owner",
    "actor": "ada",
    "subject": f"dlv_{SAMPLE_ID}",
    "details": {},
}
EVENT_TYPE: dict[str, Any] = {
    "name": "summary.completed",
    "description": "A summary record is ready.",
    "schema": {"type": "object"},
    "sample": {"audio_id": "a_1"},
}

"""What the OpenAPI document says about recording: shapes, examples, errors, outgoing events."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter

from recording import errors
from recording.webhooks import EVENT_TYPES, SUMMARY_COMPLETED
from webhooks_core.api.json_schema import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    STRING,
    array_of,
    items_of,
    object_of,
    ref,
)
from webhooks_core.api.openapi import ProductAutoSchema, adding, count

TAG = "Recording webhooks"
ENDPOINT_ID = "ep_0d1k3v5m7p9r1t3v5n7q9s0u2g"
EVENT_ID = "evt_0d1k3v5m9a2c4e6g8i0k2m4o6q"
DELIVERY_ID = "dlv_0d1k3v5mb1d3f5h7j9l1n3p5r7"
TIME = "2026-11-21T03:20:00.000000Z"
URL = "https://hooks.example.com/recording"

EVENT_LIST = array_of({"type": "string", "enum": [*EVENT_TYPES]})
STATUS = {"type": "integer", "enum": [1, 2], "description": "1 active, 2 disabled."}


SCHEMAS: dict[str, dict[str, Any]] = {
    "RecordingError": object_of(error=object_of(code=STRING, message=STRING)),
    "RecordingSubscription": object_of(
        id=STRING,
        url=STRING,
        events=EVENT_LIST,
        status=STATUS,
        consecutive_failures=INTEGER,
        created_at=DATE_TIME,
        updated_at=DATE_TIME,
    ),
    "RecordingSubscriptionCreated": object_of(
        endpoint_id=STRING,
        secret={"type": "string", "description": "`whsec_…`, shown only here."},
        url=STRING,
        events=EVENT_LIST,
        status=STATUS,
    ),
    "RecordingDelivery": object_of(
        id=STRING,
        endpoint_id=STRING,
        event_id=STRING,
        event_type=STRING,
        status={
            "type": "integer",
            "enum": [0, 1, 2],
            "description": "0 pending, 1 delivered, 2 terminal failure.",
        },
        attempts=INTEGER,
        last_error={"type": "string", "description": "Empty until a failure."},
        delivered_at={"type": "string", "description": "Empty until delivered."},
        created_at=DATE_TIME,
    ),
    "RecordingEvent": object_of(
        id=STRING, type=STRING, created_at=DATE_TIME, data={"type": "object"}
    ),
}


add_schemas = adding(SCHEMAS)


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "recording.authentication.BearerAuthentication"
    name = "recordingBearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An OAuth access token or a personal API token.",
        }


DESCRIBER = ProductAutoSchema(
    "recording",
    TAG,
    "RecordingError",
    (errors.UnauthorizedError, errors.InternalError, errors.UnavailableError),
)
BODY = (
    errors.BadRequestError,
    errors.PayloadTooLargeError,
    errors.UnsupportedMediaTypeError,
)
ENDPOINT = OpenApiParameter("endpoint_id", str, OpenApiParameter.PATH)
SUBSCRIPTION_EXAMPLE = {
    "id": ENDPOINT_ID,
    "url": URL,
    "events": [SUMMARY_COMPLETED],
    "status": 1,
    "consecutive_failures": 0,
    "created_at": TIME,
    "updated_at": TIME,
}
DELIVERY_EXAMPLE = {
    "id": DELIVERY_ID,
    "endpoint_id": ENDPOINT_ID,
    "event_id": EVENT_ID,
    "event_type": SUMMARY_COMPLETED,
    "status": 1,
    "attempts": 1,
    "last_error": "",
    "delivered_at": TIME,
    "created_at": TIME,
}
FIELDS = {"url": STRING, "events": EVENT_LIST}
FIELDS_EXAMPLE = {"url": URL, "events": [SUMMARY_COMPLETED]}
EVENT_EXAMPLE = {
    "id": EVENT_ID,
    "type": SUMMARY_COMPLETED,
    "created_at": TIME,
    "data": EVENT_TYPES[SUMMARY_COMPLETED].sample,
}

LIST = DESCRIBER.operation(
    "list",
    "List the account's subscriptions, newest first",
    answers={
        200: (items_of("RecordingSubscription"), {"items": [SUBSCRIPTION_EXAMPLE]})
    },
)
CREATE = DESCRIBER.operation(
    "create",
    "Create a subscription; its secret is returned only here",
    request={"application/json": object_of(["url"], **FIELDS)},
    request_example=FIELDS_EXAMPLE,
    answers={
        201: (
            ref("RecordingSubscriptionCreated"),
            {
                "endpoint_id": ENDPOINT_ID,
                "secret": "whsec_<base64 of 32 bytes>",
                "url": URL,
                "events": [SUMMARY_COMPLETED],
                "status": 1,
            },
        )
    },
    fails=(*BODY, errors.TooManyRequestsError),
)
UPDATE = DESCRIBER.operation(
    "update",
    "Replace the events, and the url unless it is omitted or empty",
    parameters=[ENDPOINT],
    request={"application/json": object_of([], **FIELDS)},
    request_example=FIELDS_EXAMPLE,
    answers={
        200: (
            object_of(item=ref("RecordingSubscription")),
            {"item": SUBSCRIPTION_EXAMPLE},
        )
    },
    fails=(*BODY, errors.NotFoundError),
)
DELETE = DESCRIBER.operation(
    "delete",
    "Delete a subscription and free its quota",
    parameters=[ENDPOINT],
    answers={200: (object_of(ok=BOOLEAN), {"ok": True})},
    fails=(errors.NotFoundError,),
)
TEST = DESCRIBER.operation(
    "test",
    "Queue a signed webhook.ping for this subscription alone",
    parameters=[ENDPOINT],
    answers={
        200: (
            object_of(event_id=STRING, queued=BOOLEAN),
            {"event_id": EVENT_ID, "queued": True},
        )
    },
    fails=(errors.NotFoundError, errors.TooManyRequestsError),
)
DELIVERIES = DESCRIBER.operation(
    "deliveries",
    "List what was sent to a subscription, newest first",
    parameters=[
        ENDPOINT,
        count("page", default=1),
        count("page_size", default=20, maximum=100),
    ],
    answers={200: (items_of("RecordingDelivery"), {"items": [DELIVERY_EXAMPLE]})},
    fails=(errors.BadRequestError, errors.NotFoundError),
)
SAMPLES = DESCRIBER.operation(
    "samples",
    "Show recent events of a type, or a synthetic one when there are none",
    parameters=[
        OpenApiParameter("event", STRING | {"enum": [*EVENT_TYPES]}, required=True),
        count("limit", default=3, maximum=10),
    ],
    answers={200: (array_of(ref("RecordingEvent")), [EVENT_EXAMPLE])},
    fails=(errors.BadRequestError,),
)

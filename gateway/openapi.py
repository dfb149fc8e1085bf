"""What the OpenAPI document says about the gateway: shapes, examples, errors, events."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter

from gateway import errors
from gateway.ingest import CONTENT_TYPES
from gateway.webhooks import EVENT_TYPES, INGEST_COMPLETED, SUBSCRIBABLE
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
from webhooks_core.api.openapi import Describer, adding, count
from webhooks_core.encryption import MASK

TAG = "Gateway webhooks"
SUBSCRIPTION_ID = "whsub_0d1k3v5m7p9r1t3v5n7q9s0u2g"
EVENT_ID = "evt_0d1k3v5m9a2c4e6g8i0k2m4o6q"
DELIVERY_ID = "dlv_0d1k3v5mb1d3f5h7j9l1n3p5r7"
TIME = "2026-11-21T03:20:00.000000Z"
URL = "https://hooks.example.com/gateway"
SECRET = "whsec_<base64 of 32 bytes>"  # noqa: S105 - a placeholder

EVENT_TYPE_LIST = array_of(
    {
        "type": "string",
        "enum": SUBSCRIBABLE,
    }
)
URL_FIELD = STRING | {"maxLength": 2048}
DESCRIPTION_FIELD = STRING | {"maxLength": 1000}
TIME_OR_NULL = {"type": ["string", "null"], "format": "date-time"}

SCHEMAS: dict[str, dict[str, Any]] = {
    "GatewayError": object_of(detail={"description": "Usually a text."}),
    "GatewaySubscription": object_of(
        id=STRING,
        url=STRING,
        event_types=EVENT_TYPE_LIST | {"description": "Empty: all of them."},
        description=STRING,
        secret=STRING | {"description": "Masked, but in the answer that creates it."},
        active=BOOLEAN,
        created_at=DATE_TIME,
        updated_at=DATE_TIME | {"description": "Of the subscription's last change."},
        last_attempt_at=TIME_OR_NULL | {"description": "Null before the first one."},
    ),
    "GatewayDelivery": object_of(
        id=STRING,
        event_id=STRING,
        event_type=STRING,
        status={"type": "string", "enum": ["attempting", "delivered", "failed"]},
        attempts=INTEGER,
        last_error=STRING | {"description": "Empty until a failure."},
        next_attempt_at=TIME_OR_NULL,
        delivered_at=TIME_OR_NULL,
        created_at=DATE_TIME,
    ),
    "GatewayIngestResult": dict(EVENT_TYPES[INGEST_COMPLETED].schema),
}


add_schemas = adding(SCHEMAS)


class GatewayScheme(OpenApiAuthenticationExtension):
    target_class = "gateway.authentication.GatewayAuthentication"
    name = ["gatewayKey", "gatewayTenant", "gatewayPrincipal"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        key, tenant, principal = self.name
        return [{key: []}, {tenant: [], principal: []}]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        header = {
            "type": "apiKey",
            "in": "header",
            "description": "Accepted from trusted proxies only.",
        }
        return [
            {"type": "http", "scheme": "bearer", "description": "A gateway key."},
            header | {"name": "X-Tenant-Id"},
            header | {"name": "X-Principal-Id"},
        ]


DESCRIBER = Describer(
    "gateway",
    TAG,
    "GatewayError",
    (errors.UnauthorizedError, errors.InternalError, errors.UnavailableError),
)
operation = DESCRIBER.operation
BODY = (
    errors.BadRequestError,
    errors.PayloadTooLargeError,
    errors.UnsupportedMediaTypeError,
)
SUBSCRIPTION = OpenApiParameter("subscription_id", str, OpenApiParameter.PATH)
SUBSCRIPTION_EXAMPLE = {
    "id": SUBSCRIPTION_ID,
    "url": URL,
    "event_types": [INGEST_COMPLETED],
    "description": "",
    "secret": MASK,
    "active": True,
    "created_at": TIME,
    "updated_at": TIME,
    "last_attempt_at": None,
}
FIELDS = {
    "url": URL_FIELD,
    "event_types": EVENT_TYPE_LIST,
    "description": DESCRIPTION_FIELD,
    "active": BOOLEAN,
}
SECRET_FIELD = {
    "type": ["string", "null"],
    "maxLength": 256,
    "description": "Printable ASCII; made when it is absent or null.",
}

LIST = operation(
    "subscriptions_list",
    "List the tenant's subscriptions, newest first",
    parameters=[
        count("page", default=1),
        count("page_size", default=None, maximum=100),
    ],
    answers={200: (ref("GatewaySubscription"), SUBSCRIPTION_EXAMPLE)},
    fails=(errors.BadRequestError,),
)
CREATE = operation(
    "subscriptions_create",
    "Create a subscription; its secret is returned only here",
    request={"application/json": object_of(["url"], secret=SECRET_FIELD, **FIELDS)},
    request_example={"url": URL, "event_types": [INGEST_COMPLETED]},
    answers={
        201: (ref("GatewaySubscription"), SUBSCRIPTION_EXAMPLE | {"secret": SECRET})
    },
    fails=(*BODY, errors.TooManyRequestsError),
)
DESCRIBE = operation(
    "subscriptions_describe",
    "Describe a subscription",
    parameters=[SUBSCRIPTION],
    answers={200: (ref("GatewaySubscription"), SUBSCRIPTION_EXAMPLE)},
    fails=(errors.NotFoundError,),
)
UPDATE = operation(
    "subscriptions_update",
    "Change url, event types, description or the active toggle",
    parameters=[SUBSCRIPTION],
    request={"application/json": object_of([], **FIELDS)},
    request_example={"active": False},
    answers={
        200: (ref("GatewaySubscription"), SUBSCRIPTION_EXAMPLE | {"active": False})
    },
    fails=(*BODY, errors.NotFoundError, errors.ConflictError),
)
DELETE = operation(
    "subscriptions_delete",
    "Delete a subscription; what waits for it is never sent",
    parameters=[SUBSCRIPTION],
    answers={204: (None, None)},
    fails=(errors.NotFoundError, errors.ConflictError),
)
TEST = operation(
    "subscriptions_test",
    "Queue a signed webhook.test for this subscription alone",
    parameters=[SUBSCRIPTION],
    answers={
        202: (
            object_of(event_id=STRING, queued=BOOLEAN),
            {"event_id": EVENT_ID, "queued": True},
        )
    },
    fails=(errors.NotFoundError, errors.ConflictError, errors.TooManyRequestsError),
)
DELIVERIES = operation(
    "subscriptions_deliveries",
    "List what was sent to a subscription, newest first",
    parameters=[
        SUBSCRIPTION,
        count("page", default=1),
        count("page_size", default=20, maximum=100),
    ],
    answers={
        200: (
            items_of("GatewayDelivery"),
            {
                "items": [
                    {
                        "id": DELIVERY_ID,
                        "event_id": EVENT_ID,
                        "event_type": INGEST_COMPLETED,
                        "status": "delivered",
                        "attempts": 1,
                        "last_error": "",
                        "next_attempt_at": None,
                        "delivered_at": TIME,
                        "created_at": TIME,
                    }
                ]
            },
        )
    },
    fails=(errors.BadRequestError, errors.NotFoundError),
)
DOCUMENT = {
    "title": STRING | {"maxLength": 255},
    "content_type": {
        "type": "string",
        "enum": [*CONTENT_TYPES],
        "default": "text/plain",
    },
}
RESULT = (ref("GatewayIngestResult"), EVENT_TYPES[INGEST_COMPLETED].sample)
INGEST = operation(
    "ingest",
    "Ingest a document; the same text again answers 200 with the first result",
    request={
        "application/json": object_of(
            ["text"], text=STRING, metadata={"type": "object"}, **DOCUMENT
        ),
        "multipart/form-data": object_of(
            ["file"],
            file={"type": "string", "format": "binary"},
            metadata=STRING | {"description": "A JSON object."},
            **DOCUMENT,
        ),
    },
    request_example={
        "title": "Harbour regulations",
        "text": "# Harbour regulations\n\nShips give way to ferries.",
        "content_type": "text/markdown",
        "metadata": {"source": "intranet"},
    },
    answers={201: RESULT, 200: RESULT},
    fails=(*BODY, errors.TooManyRequestsError),
)

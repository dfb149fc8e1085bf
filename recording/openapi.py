"""What the OpenAPI document says about recording: shapes, examples, errors, outgoing events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    OpenApiWebhook,
    extend_schema,
)

from recording import errors
from recording.errors import RecordingError
from recording.webhooks import EVENT_TYPES, PING, SUMMARY_COMPLETED
from webhooks_core.profiles import EventType
from webhooks_core.schemas import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    STRING,
    array_of,
    items_of,
    object_of,
    ref,
)

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


def add_schemas(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put our shapes among the document's components (a drf-spectacular hook)."""
    components = result["components"]
    shapes = components.get("schemas", {}) | SCHEMAS
    components["schemas"] = dict(sorted(shapes.items()))
    return result


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "recording.authentication.BearerAuthentication"
    name = "recordingBearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An OAuth access token or a personal API token.",
        }


Failure = Callable[[], RecordingError]


def _failure(told: RecordingError) -> OpenApiResponse:
    example = OpenApiExample(told.code, value=told.body, response_only=True)
    return OpenApiResponse(ref("RecordingError"), told.message, [example])


COMMON = (errors.UnauthorizedError, errors.InternalError, errors.UnavailableError)
BODY = (
    errors.BadRequestError,
    errors.PayloadTooLargeError,
    errors.UnsupportedMediaTypeError,
)


def _operation(  # noqa: PLR0913 - the parts of an OpenAPI operation
    operation_id: str,
    description: str,
    *,
    answer: dict[str, Any],
    example: Any,
    status: int = 200,
    fails: Sequence[Failure] = (),
    request: dict[str, Any] | None = None,
    request_example: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    examples = [OpenApiExample("answer", value=example, response_only=True)]
    success = OpenApiResponse(answer, description, examples)
    told = (kind() for kind in (*fails, *COMMON))
    failures = {failure.status_code: _failure(failure) for failure in told}
    return extend_schema(
        operation_id=f"recording_{operation_id}",
        summary=description,
        tags=[TAG],
        parameters=[*parameters],
        request=None if request is None else {"application/json": request},
        responses={status: success} | dict(sorted(failures.items())),
        examples=[]
        if request is None
        else [OpenApiExample("request", value=request_example, request_only=True)],
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
EVENT_EXAMPLE = {
    "id": EVENT_ID,
    "type": SUMMARY_COMPLETED,
    "created_at": TIME,
    "data": EVENT_TYPES[SUMMARY_COMPLETED].sample,
}


def _count(name: str, *, default: int, maximum: int | None = None) -> OpenApiParameter:
    schema = {"type": "integer", "minimum": 1, "default": default}
    told = "" if maximum is None else f"Above {maximum}: {maximum}."
    return OpenApiParameter(name, schema, description=told)


LIST = _operation(
    "list",
    "List the account's subscriptions, newest first",
    answer=items_of("RecordingSubscription"),
    example={"items": [SUBSCRIPTION_EXAMPLE]},
)
CREATE = _operation(
    "create",
    "Create a subscription; its secret is returned only here",
    status=201,
    request=object_of(["url"], url=STRING, events=EVENT_LIST),
    request_example={"url": URL, "events": [SUMMARY_COMPLETED]},
    answer=ref("RecordingSubscriptionCreated"),
    example={
        "endpoint_id": ENDPOINT_ID,
        "secret": "whsec_<base64 of 32 bytes>",
        "url": URL,
        "events": [SUMMARY_COMPLETED],
        "status": 1,
    },
    fails=(*BODY, errors.TooManyRequestsError),
)
UPDATE = _operation(
    "update",
    "Replace the events, and the url unless it is omitted or empty",
    parameters=[ENDPOINT],
    request=object_of([], url=STRING, events=EVENT_LIST),
    request_example={"url": URL, "events": [SUMMARY_COMPLETED]},
    answer=object_of(item=ref("RecordingSubscription")),
    example={"item": SUBSCRIPTION_EXAMPLE},
    fails=(*BODY, errors.NotFoundError),
)
DELETE = _operation(
    "delete",
    "Delete a subscription and free its quota",
    parameters=[ENDPOINT],
    answer=object_of(ok=BOOLEAN),
    example={"ok": True},
    fails=(errors.NotFoundError,),
)
TEST = _operation(
    "test",
    "Queue a signed webhook.ping for this subscription alone",
    parameters=[ENDPOINT],
    answer=object_of(event_id=STRING, queued=BOOLEAN),
    example={"event_id": EVENT_ID, "queued": True},
    fails=(errors.NotFoundError, errors.TooManyRequestsError),
)
DELIVERIES = _operation(
    "deliveries",
    "List what was sent to a subscription, newest first",
    parameters=[
        ENDPOINT,
        _count("page", default=1),
        _count("page_size", default=20, maximum=100),
    ],
    answer=items_of("RecordingDelivery"),
    example={
        "items": [
            {
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
        ]
    },
    fails=(errors.BadRequestError, errors.NotFoundError),
)
SAMPLES = _operation(
    "samples",
    "Show recent events of a type, or a synthetic one when there are none",
    parameters=[
        OpenApiParameter("event", STRING | {"enum": [*EVENT_TYPES]}, required=True),
        _count("limit", default=3, maximum=10),
    ],
    answer=array_of(ref("RecordingEvent")),
    example=[EVENT_EXAMPLE],
    fails=(errors.BadRequestError,),
)


def _outgoing(event_type: EventType) -> OpenApiWebhook:
    """Describe what we send to subscribers."""
    envelope = object_of(
        id=STRING,
        type={"const": event_type.name},
        created_at=DATE_TIME,
        data=dict(event_type.schema),
    )
    example = {
        "id": EVENT_ID,
        "type": event_type.name,
        "created_at": TIME,
        "data": event_type.sample,
    }
    return OpenApiWebhook(
        name=event_type.name,
        decorator=extend_schema(
            summary=event_type.description,
            description="Signed; sent to the subscribed url. Answer 2xx within 5 seconds.",
            tags=[TAG],
            request={"application/json": envelope},
            responses={200: OpenApiResponse(description="Received.")},
            examples=[OpenApiExample("event", value=example)],
        ),
    )


SUMMARY_COMPLETED_WEBHOOK = _outgoing(EVENT_TYPES[SUMMARY_COMPLETED])
PING_WEBHOOK = _outgoing(EVENT_TYPES[PING])

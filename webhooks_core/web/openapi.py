"""The OpenAPI document: each operation from its route (web/views.py), and the events that are sent."""

from __future__ import annotations

from typing import Any

import orjson
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse

from webhooks_core import profiles
from webhooks_core.profiles import (
    EventContext,
    EventType,
    SigningContext,
    WebhookProfile,
)
from webhooks_core.web.json_schema import DATE_TIME, STRING, described, object_of
from webhooks_core.web.views import ProductAPIView

# Actions whose operations have another name.
OPERATIONS = {
    "partial_update": "update",
    "destroy": "delete",
    "retrieve": "describe",
}
IDEMPOTENCY = "Idempotency-Key"  # the header of requests that are done once


class ProductAutoSchema(AutoSchema):
    """Reads the route of a handler; ids of operations and names of components begin with the product.

    A view has `product`, or an `operation_prefix` for ids, `error_handler` and `error_serializer`.
    """

    view: ProductAPIView  # type: ignore[override] # the only views that it describes

    def get_operation_id(self) -> str:
        prefix = getattr(self.view, "operation_prefix", self.view.product)
        action = getattr(self.view, "action", self.method.lower())
        return f"{prefix}_{self.view.route.name or OPERATIONS.get(action, action)}"

    def get_summary(self) -> str:
        return self.view.route.summary

    def get_description(self, *_: Any) -> str:
        return ""  # docstrings are for developers

    def get_request_serializer(self) -> Any:
        route = self.view.route
        return route.request if route.summary else super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        route = self.view.route
        if not route.summary:
            return super().get_response_serializers()
        return dict.fromkeys(route.statuses, self.view.response_shape)

    def get_override_parameters(self) -> list[Any]:
        query = self.view.route.query
        return [query] if query else []

    def get_serializer_name(self, serializer: Any, direction: Any) -> str:
        name = super().get_serializer_name(serializer, direction)
        return f"{self.view.product.title()}{name}"

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call] # of the library
        if direction == "response":  # also what a request may omit
            schema["required"] = [*schema["properties"]]
        return schema

    def get_error_statuses(self) -> set[int]:
        """Return the statuses of a request's possible errors."""
        route, parameters = self.view.route, self.get_override_parameters()
        statuses = {401, 500, 503, *route.errors}
        if self.method in {"POST", "PATCH"} and self.get_request_serializer():
            statuses |= {400, 413, 415}
        if parameters:
            statuses |= {400}
        if any(getattr(each, "name", "") == IDEMPOTENCY for each in parameters):
            statuses |= {422}
        if hasattr(self.view, "required_scope"):
            statuses |= {403}
        if getattr(self.view, "detail", False):
            statuses |= {404}
        if route.throttle:
            statuses |= {429}
        return statuses

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        # Not by get_response_serializers, which @extend_schema(responses=…) replaces.
        bodies = super()._get_response_bodies(direction)
        if not hasattr(self.view, "error_serializer"):
            return bodies
        for body in bodies.values():
            body["description"] = body["description"] or self.get_summary()
        described = {int(status) for status in bodies}  # by the view itself
        for status in sorted(self.get_error_statuses() - described):
            error = self.view.error_handler.kinds[status]()
            response = OpenApiResponse(self.view.error_serializer, error.detail)
            bodies[str(status)] = self._get_response_for_code(response, str(status))  # type: ignore[no-untyped-call] # of the library
        return bodies


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

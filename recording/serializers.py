"""Requests and responses of the API under /v1. The order of fields is the order of checks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import (
    extend_schema_serializer,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from recording.webhooks import EVENT_TYPES, SUMMARY_COMPLETED
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners.delivery_search import State
from webhooks_core.times import iso
from webhooks_core.web.fields import (
    CountField,
    StrictCharField,
    StrictChoiceField,
    StrictListField,
    TimeField,
)
from webhooks_core.web.owner_examples import (
    DETAILS,
    TIME,
    request_example,
    response_example,
)
from webhooks_core.web.owner_serializers import DetailsSerializer

ENDPOINT_ID = "ep_0d1k3v5m7p9r1t3v5n7q9s0u2g"
EVENT_ID = "evt_0d1k3v5m9a2c4e6g8i0k2m4o6q"
REQUEST: dict[str, Any] = {
    "url": "https://hooks.example.com/recording",
    "events": [SUMMARY_COMPLETED],
}
SUBSCRIPTION: dict[str, Any] = {
    "id": ENDPOINT_ID,
    **REQUEST,
    "status": Endpoint.Status.ACTIVE.value,
    "consecutive_failures": 0,
    "created_at": TIME,
    "updated_at": TIME,
}

EVENT_TYPE_CHOICES = [(known.name, known.description) for known in EVENT_TYPES.values()]
EVENT: dict[str, Any] = {
    "id": EVENT_ID,
    "type": SUMMARY_COMPLETED,
    "created_at": TIME,
    "data": EVENT_TYPES[SUMMARY_COMPLETED].sample,
}

UNKNOWN_TYPE = f"{{field}}: unknown event type; known are {', '.join(EVENT_TYPES)}."


class ErrorDetailSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="The kind of the error, for programs.")
    message = serializers.CharField(help_text="What is wrong, for people.")


class ErrorSerializer(serializers.Serializer[Any]):
    error = ErrorDetailSerializer(help_text="The kind of the error, and a text.")


class EventsField(StrictListField):
    """Event types, each once, in the order given."""

    child = StrictChoiceField(
        EVENT_TYPE_CHOICES,
        error_messages={
            "invalid": "{field} must be an array of strings.",
            "invalid_choice": UNKNOWN_TYPE,
        },
    )


class UpdatedAtField(TimeField):
    """When a subscription was last changed or tried."""

    def to_representation(self, value: Any) -> str:
        return iso(max(value.updated_at, value.last_attempt_at or value.updated_at))


@extend_schema_serializer(
    examples=[
        request_example(REQUEST),
        response_example(SUBSCRIPTION),
    ]
)
class SubscriptionSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        source="public_id", read_only=True, help_text="`ep_` and 26 characters."
    )
    url = StrictCharField(
        allow_blank=True,
        help_text="Where events are sent. Empty or missing in a change: it stays.",
    )
    events = EventsField(
        source="event_types",
        default=list,
        help_text="The event types to receive, each once. Empty: none.",
    )
    status = serializers.ChoiceField(
        Endpoint.Status.choices,
        read_only=True,
        help_text="1: active. 2: disabled, after 20 failed attempts in a row.",
    )
    consecutive_failures = serializers.IntegerField(
        read_only=True, help_text="Failed attempts since the last success."
    )
    created_at = TimeField(read_only=True, help_text="UTC.")
    updated_at = UpdatedAtField(
        source="*", read_only=True, help_text="UTC: the last change or attempt."
    )

    # What the fields read: a list of subscriptions leaves out the other two thirds of the columns.
    columns = (
        *("public_id", "url", "event_types", "status", "consecutive_failures"),
        *("created_at", "updated_at", "last_attempt_at"),
    )

    def to_internal_value(self, data: Any) -> Any:
        # A missing url is reported after a fault of the events.
        return super().to_internal_value({"url": "", **data})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if self.instance is None and not attrs["url"]:
            raise ValidationError("url is required.")
        return attrs


@extend_schema_serializer(examples=[response_example({"item": SUBSCRIPTION})])
class SubscriptionItemSerializer(serializers.Serializer[Any]):
    item = SubscriptionSerializer(
        source="*", help_text="The subscription after the change."
    )


@extend_schema_serializer(
    examples=[
        response_example(
            {
                "endpoint_id": ENDPOINT_ID,
                "secret": "whsec_<base64 of 32 bytes>",
                **REQUEST,
                "status": Endpoint.Status.ACTIVE.value,
            }
        )
    ]
)
class SubscriptionCreatedSerializer(serializers.Serializer[Any]):
    endpoint_id = serializers.CharField(
        source="endpoint.public_id", help_text="The id of the new subscription."
    )
    secret = serializers.CharField(help_text="`whsec_…`, shown only here.")
    url = serializers.CharField(source="endpoint.url", help_text="As it was sent.")
    events = EventsField(source="endpoint.event_types", help_text="As they were sent.")
    status = serializers.ChoiceField(
        Endpoint.Status.choices, source="endpoint.status", help_text="1: active."
    )


DELIVERY: dict[str, Any] = {
    "id": "dlv_0d1k3v5mb1d3f5h7j9l1n3p5r7",
    "endpoint_id": ENDPOINT_ID,
    "event_id": EVENT_ID,
    "event_type": SUMMARY_COMPLETED,
    "status": Delivery.Status.DELIVERED.value,
    "attempts": 1,
    "last_error": "",
    "delivered_at": TIME,
    "created_at": TIME,
}
# The values of a filter.
STATES = {
    "0": State.PENDING,
    "1": State.DELIVERED,
    "2": State.FAILED,
    "failed_undelivered": State.FAILED_UNDELIVERED,
}


@extend_schema_serializer(examples=[response_example(DELIVERY)])
class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="The same in retries.")
    endpoint_id = serializers.CharField(help_text="The subscription it is for.")
    event_id = serializers.CharField(
        source="event__public_id", help_text="The `id` in the body."
    )
    event_type = serializers.CharField(
        source="event__type", help_text="The `type` in the body."
    )
    status = serializers.ChoiceField(
        Delivery.Status.choices, help_text="0 is pending, 1 delivered, 2 failed."
    )
    attempts = serializers.IntegerField(help_text="Requests that were sent so far.")
    last_error = serializers.CharField(help_text="Empty until a failure.")
    delivered_at = serializers.SerializerMethodField(help_text="Empty until delivered.")
    created_at = TimeField(help_text="UTC: when the event was published.")

    def get_delivered_at(self, row: dict[str, Any]) -> str:
        return iso(row["delivered_at"]) if row["delivered_at"] else ""


@extend_schema_serializer(
    examples=[response_example({**DETAILS, "delivery": DELIVERY})]
)
class DeliveryDetailsSerializer(DetailsSerializer):
    delivery = DeliverySerializer(source="row", help_text="As in the list.")


# A class would hide its own `data`.
EVENTS = inline_serializer(
    "Event",
    {
        "id": serializers.CharField(help_text="The same in every delivery of it."),
        "type": serializers.CharField(help_text="The event type."),
        "created_at": TimeField(help_text="UTC: when it was published."),
        "data": serializers.DictField(help_text="What the event type defines."),
    },
    many=True,
)


class EventTypeParameter(StrictChoiceField):
    """A known event type; an empty parameter counts as a missing one."""

    default_error_messages = {
        "required": "{field} is required: the event type.",
        "invalid_choice": UNKNOWN_TYPE,
    }

    def run_validation(self, data: Any = empty) -> Any:
        return super().run_validation(data or empty)


class SampleQuery(serializers.Serializer[Any]):
    event = EventTypeParameter(EVENT_TYPE_CHOICES, help_text="The event type.")
    limit = CountField(default=3, maximum=10, help_text="How many at most.")

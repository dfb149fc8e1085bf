"""Requests and responses of the API under /v1. The order of fields is the order of checks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from recording.webhooks import EVENT_TYPES
from webhooks_core.api.shapes import DetailsShape
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners.deliveries import State
from webhooks_core.times import iso
from webhooks_core.web.fields import (
    CountField,
    StrictCharField,
    StrictChoiceField,
    StrictListField,
    TimeField,
)

EVENT_TYPE_CHOICES = [(known.name, known.description) for known in EVENT_TYPES.values()]
UNKNOWN_TYPE = f"{{field}}: unknown event type; known are {', '.join(EVENT_TYPES)}."


class ErrorDetailSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="The kind of the error, for programs.")
    message = serializers.CharField(help_text="What is wrong, for people.")


class ErrorSerializer(serializers.Serializer[Any]):
    error = ErrorDetailSerializer(help_text="The kind of the error, and a text.")


class EventsField(StrictListField):
    """Event types, each once, in the order given."""

    child = StrictChoiceField(
        EVENT_TYPE_CHOICES, error_messages={"invalid_choice": UNKNOWN_TYPE}
    )


class UpdatedAtField(TimeField):
    """When a subscription was last changed or tried."""

    def to_representation(self, value: Any) -> str:
        return iso(max(value.updated_at, value.last_attempt_at or value.updated_at))


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


class SubscriptionItemSerializer(serializers.Serializer[Any]):
    item = SubscriptionSerializer(
        source="*", help_text="The subscription after the change."
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


# The values of a filter.
STATES = {
    "0": State.PENDING,
    "1": State.DELIVERED,
    "2": State.FAILED,
    "failed_undelivered": State.FAILED_UNDELIVERED,
}


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="The same in retries.")
    endpoint_id = serializers.CharField(
        source="endpoint.public_id", help_text="The subscription it is for."
    )
    event_id = serializers.CharField(
        source="event.public_id", help_text="The `id` in the body."
    )
    event_type = serializers.CharField(
        source="event.type", help_text="The `type` in the body."
    )
    status = serializers.ChoiceField(
        Delivery.Status.choices, help_text="0 is pending, 1 delivered, 2 failed."
    )
    attempts = serializers.IntegerField(help_text="Requests that were sent so far.")
    last_error = serializers.CharField(help_text="Empty until a failure.")
    delivered_at = serializers.SerializerMethodField(help_text="Empty until delivered.")
    created_at = TimeField(help_text="UTC: when the event was published.")

    def get_delivered_at(self, row: Delivery) -> str:
        return iso(row.delivered_at) if row.delivered_at else ""


class DeliveryDetailsSerializer(DetailsShape):
    delivery = DeliverySerializer(help_text="As in the list.")


class DeletedSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField(help_text="Always true.")


class PingSerializer(serializers.Serializer[Any]):
    event_id = serializers.CharField(help_text="The `id` in the body of the event.")
    queued = serializers.BooleanField(help_text="Always true: it is stored.")


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

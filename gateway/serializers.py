"""The bodies of the REST API: the shape of requests and of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson
from django.conf import settings
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.configuration.rules import check_secret
from gateway.fields import EventTypesField, FilterField, StoredText
from gateway.ingest import CONTENT_TYPES, PLAIN
from gateway.parsers import MAX_DATA_BYTES
from gateway.publishing import publishable
from webhooks_core.api.shapes import DetailsShape
from webhooks_core.endpoints import Created
from webhooks_core.errors import PayloadTooLargeError
from webhooks_core.models import Delivery
from webhooks_core.owners.deliveries import State
from webhooks_core.secrets import MASK
from webhooks_core.web.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    TimeField,
)
from webhooks_core.web.json_schema import STRING, object_of

MAX_DESCRIPTION = 1000
MAX_TITLE = 255
TITLE_ERROR = f"title must have at most {MAX_TITLE} characters, and no NUL."
MAX_METADATA_BYTES = 16_384

STATUSES: Mapping[int, Literal["attempting", "delivered", "failed"]] = {
    Delivery.Status.PENDING: "attempting",
    Delivery.Status.DELIVERED: "delivered",
    Delivery.Status.FAILED: "failed",
}


class ErrorSerializer(serializers.Serializer[Any]):
    detail = serializers.JSONField(help_text="Usually a text.")


class SecretField(StrictCharField):
    """The secret of a subscription: written once, and masked in every later response."""

    def get_attribute(self, instance: Any) -> str:
        return MASK


class SubscriptionSerializer(serializers.Serializer[Any]):
    """A subscription, and what a request says of it."""

    id = serializers.CharField(
        source="public_id", read_only=True, help_text="`whsub_` and 26 characters."
    )
    url = StrictCharField(help_text="Where events are sent.")
    event_types = EventTypesField(
        required=False, help_text="The event types to receive. Empty: all of them."
    )
    description = StoredText(
        required=False,
        help_text="A note for people.",
        allow_blank=True,
        max_length=MAX_DESCRIPTION,
        error_messages={
            "max_length": "description is longer than {max_length} characters."
        },
    )
    secret = SecretField(
        required=False,
        allow_null=True,
        allow_blank=True,
        help_text="Only to create: printable ASCII, generated when it is absent or null. Masked, "
        "except in the response that creates it.",
    )
    active = StrictBooleanField(
        required=False, help_text="False: nothing is sent until it is true again."
    )
    created_at = TimeField(read_only=True, help_text="UTC.")
    updated_at = TimeField(
        read_only=True, help_text="Of the subscription's last change."
    )
    last_attempt_at = TimeField(
        read_only=True, allow_null=True, help_text="Null before the first one."
    )
    filter = FilterField(
        required=False,
        allow_null=True,
        help_text="What an event must be, beside its type; null or `{}`: anything.",
    )

    # What the fields read.
    columns = (
        *("public_id", "url", "event_types", "description", "active", "created_at"),
        *("updated_at", "last_attempt_at", "filter"),
    )

    def to_internal_value(self, data: Any) -> Any:
        if self.instance is not None and "secret" in data:
            message = "secret cannot be changed here; it is rotated."
            raise ValidationError({"secret": message})
        return super().to_internal_value(data)

    def validate_secret(self, secret: str | None) -> str | None:
        try:
            return None if secret is None else check_secret(secret)
        except ValueError as error:
            raise ValidationError(f"secret {error}.") from error

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        if "url" not in getattr(self, "initial_data", {"url"}):
            fields["url"] = fields.pop("url")  # a missing url is the last error
        return fields


class SubscriptionCreatedSerializer(SubscriptionSerializer):
    def to_representation(self, instance: Created) -> dict[str, Any]:
        subscription = super().to_representation(instance.endpoint)
        return {**subscription, "secret": instance.secret}


# The values of a filter.
STATES = {
    "attempting": State.PENDING,
    "delivered": State.DELIVERED,
    "failed": State.FAILED,
    "failed_undelivered": State.FAILED_UNDELIVERED,
}


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="The same in retries.")
    event_id = serializers.CharField(
        source="event.public_id", help_text="The same in every delivery of the event."
    )
    event_type = serializers.CharField(source="event.type", help_text="What happened.")
    status = serializers.SerializerMethodField(
        help_text="`attempting` until it is delivered or failed for good."
    )
    attempts = serializers.IntegerField(help_text="Requests that were sent so far.")
    last_error = serializers.CharField(help_text="Empty until a failure.")
    next_attempt_at = TimeField(allow_null=True, help_text="Null: there is none.")
    delivered_at = TimeField(allow_null=True, help_text="Null until delivered.")
    created_at = TimeField(help_text="UTC: when the event was published.")

    def get_status(self, row: Delivery) -> Literal["attempting", "delivered", "failed"]:
        return STATUSES[row.status]


class DeliveryDetailsSerializer(DetailsShape):
    delivery = DeliverySerializer(help_text="As in the list.")


class QueuedSerializer(serializers.Serializer[Any]):
    event_id = serializers.CharField(help_text="The id of the test event.")
    queued = serializers.BooleanField(help_text="Always true: it is stored.")


class NewEventSerializer(serializers.Serializer[Any]):
    type = StrictCharField(help_text="A type that the configuration lets you publish.")
    data = serializers.DictField(  # type: ignore[assignment] # the class gives its fields away
        help_text=f"The event's `data`. At most {MAX_DATA_BYTES} bytes.",
        error_messages={
            "required": "data is required.",
            **dict.fromkeys(("null", "not_a_dict"), "data must be an object."),
        },
    )

    def validate_type(self, name: str) -> str:
        known = publishable()
        if name not in known:
            names = ", ".join(known) or "none"
            raise ValidationError(f"type cannot be published; known are {names}.")
        return name

    def validate_data(self, data: dict[str, Any]) -> dict[str, Any]:
        if _size_of("data", data) > MAX_DATA_BYTES:
            raise PayloadTooLargeError(f"data is over {MAX_DATA_BYTES} bytes.")
        return data


class PublishedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Of the event.")
    duplicate = serializers.BooleanField(help_text="True: it was published before.")
    subscriptions = serializers.ListField(
        child=serializers.CharField(), help_text="The subscriptions that get it."
    )


class DocumentSerializer(serializers.Serializer[Any]):
    text = StoredText(
        allow_blank=True,
        help_text="The document. Not empty; `GATEWAY_INGEST_MAX_BYTES` limits it.",
    )
    title = StoredText(
        help_text="A name for people.",
        allow_blank=True,
        default="",
        max_length=MAX_TITLE,
        error_messages=dict.fromkeys(("max_length", "nul"), TITLE_ERROR),
    )
    content_type = StrictChoiceField(
        choices=CONTENT_TYPES,
        default=PLAIN,
        help_text="What the text is.",
        error_messages=dict.fromkeys(
            ("invalid", "invalid_choice"),
            f"content_type must be one of {', '.join(CONTENT_TYPES)}.",
        ),
    )
    metadata = serializers.DictField(
        help_text=f"Any JSON object, at most {MAX_METADATA_BYTES} bytes.",
        default=dict,
        error_messages=dict.fromkeys(
            ("null", "not_a_dict"), "metadata must be an object."
        ),
    )

    def validate_text(self, text: str) -> str:
        limit = settings.GATEWAY_INGEST_MAX_BYTES
        if not text.strip():
            raise ValidationError("text must not be empty.")
        if len(text.encode()) > limit:
            raise PayloadTooLargeError(f"The text is over {limit} bytes.")
        return text

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if _size_of("metadata", metadata) > MAX_METADATA_BYTES:
            raise ValidationError(f"metadata is over {MAX_METADATA_BYTES} bytes.")
        return metadata


def _size_of(name: str, value: Any) -> int:
    """Return how many bytes JSON has; it must be writable also two levels deep in an envelope."""
    try:
        return len(orjson.dumps([[value]])) - len("[[]]")
    except TypeError as error:
        raise ValidationError(f"{name} is nested too deeply.") from error


DOCUMENT_FORM = object_of(
    ["file"],
    file=STRING | {"format": "binary", "description": "The document, as UTF-8."},
    title=STRING | {"maxLength": MAX_TITLE, "description": "A name for people."},
    content_type=STRING
    | {"description": "What the text is; else the type of the file."},
    metadata=STRING | {"description": "A JSON object."},
)

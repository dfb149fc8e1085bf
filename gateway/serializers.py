"""The bodies of the REST API: the shape of requests and of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson
from django.conf import settings
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.errors import PayloadTooLargeError
from gateway.events import is_deeper
from gateway.ingest import CONTENT_TYPES, PLAIN
from gateway.webhooks import SUBSCRIBABLE
from webhooks_core.api.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictListField,
    TimeField,
)
from webhooks_core.encryption import MASK
from webhooks_core.models import Delivery, Endpoint

MAX_DESCRIPTION = 1000
MAX_SECRET = 256
MAX_TITLE = 255
MAX_METADATA_BYTES = 16_384
MAX_METADATA_DEPTH = 32


class EventTypesField(StrictListField):
    """Names of event types, each once. Whether all are strings is checked first."""

    child = StrictChoiceField(
        choices=SUBSCRIBABLE,
        error_messages={
            "invalid_choice": "{field}: unknown event type; "
            f"known are {', '.join(SUBSCRIBABLE)}."
        },
    )

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or not all(isinstance(n, str) for n in data):
            self.fail("invalid")
        names: list[str] = super().to_internal_value(data)
        return names


class ChangeSerializer(serializers.Serializer[Any]):
    """The fields of a subscription that its tenant sets: those that are given."""

    url = StrictCharField()
    event_types = EventTypesField(required=False)
    description = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=MAX_DESCRIPTION,
        error_messages={
            "max_length": "description is longer than {max_length} characters."
        },
    )
    active = StrictBooleanField(required=False)

    def to_internal_value(self, data: Any) -> Any:
        if "secret" in data and "secret" not in self.fields:
            message = "secret cannot be changed here; it is rotated."
            raise ValidationError({"secret": message})
        return super().to_internal_value(data)

    def validate_description(self, description: str) -> str:
        if "\x00" in description:
            raise ValidationError("description must not hold NUL.")
        return description


class CreationSerializer(ChangeSerializer):
    """A new subscription. It is partial: a missing url is the last error, not the first."""

    secret = StrictCharField(required=False, allow_null=True, allow_blank=True)

    def validate_secret(self, secret: str | None) -> str | None:
        minimum = settings.GATEWAY_MIN_SECRET_LENGTH
        if secret is None:
            return None
        if not minimum <= len(secret) <= MAX_SECRET:
            raise ValidationError(
                f"secret must have {minimum} to {MAX_SECRET} characters."
            )
        if not (secret.isascii() and secret.isprintable()):
            raise ValidationError("secret must be printable ASCII.")
        return secret

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "url" not in attrs:
            raise ValidationError("url is required.")
        return attrs


class SubscriptionSerializer(serializers.Serializer[Endpoint]):
    """A subscription with its secret masked."""

    id = serializers.CharField(source="public_id")
    url = serializers.CharField()
    event_types = serializers.ListField(child=serializers.ChoiceField(SUBSCRIBABLE))
    description = serializers.CharField()
    secret = serializers.SerializerMethodField()
    active = serializers.BooleanField()
    created_at = TimeField()
    updated_at = TimeField()
    last_attempt_at = TimeField()

    def get_secret(self, _: Endpoint) -> str:
        return MASK


class DeliverySerializer(serializers.Serializer[Mapping[str, Any]]):
    """A row of `subscriptions.deliveries`."""

    id = serializers.CharField(source="public_id")
    event_id = serializers.CharField(source="event__public_id")
    event_type = serializers.CharField(source="event__type")
    status = serializers.SerializerMethodField()
    attempts = serializers.IntegerField()
    last_error = serializers.CharField()
    next_attempt_at = TimeField()
    delivered_at = TimeField()
    created_at = TimeField()

    def get_status(
        self, row: Mapping[str, Any]
    ) -> Literal["attempting", "delivered", "failed"]:
        match row["status"]:
            case Delivery.Status.PENDING:
                return "attempting"
            case Delivery.Status.DELIVERED:
                return "delivered"
        return "failed"


class ContentTypeField(StrictChoiceField):
    """A media type; its parameters count for nothing, since the text is Unicode."""

    default_error_messages = dict.fromkeys(
        ("invalid", "invalid_choice"),
        f"{{field}} must be one of {', '.join(CONTENT_TYPES)}.",
    )

    def to_internal_value(self, data: Any) -> str:
        is_text = isinstance(data, str)
        name = data.partition(";")[0].strip().lower() if is_text else data
        choice: str = super().to_internal_value(name)
        return choice


class DocumentSerializer(serializers.Serializer[Any]):
    """A document to ingest."""

    text = StrictCharField(allow_blank=True)
    title = StrictCharField(allow_blank=True, default="")
    content_type = ContentTypeField(choices=CONTENT_TYPES, default=PLAIN)
    metadata = serializers.DictField(
        default=dict,
        error_messages=dict.fromkeys(
            ("null", "not_a_dict"), "metadata must be an object."
        ),
    )

    def validate_text(self, text: str) -> str:
        limit = settings.GATEWAY_INGEST_MAX_BYTES
        if not text.strip():
            raise ValidationError("text must not be empty.")
        if "\x00" in text:
            raise ValidationError("text must not hold NUL.")
        if len(text.encode()) > limit:
            raise PayloadTooLargeError(f"The text is over {limit} bytes.")
        return text

    def validate_title(self, title: str) -> str:
        if len(title) > MAX_TITLE or "\x00" in title:
            raise ValidationError(
                f"title must have at most {MAX_TITLE} characters, and no NUL."
            )
        return title

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if is_deeper(metadata, MAX_METADATA_DEPTH):
            raise ValidationError(
                f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels."
            )
        if len(orjson.dumps(metadata)) > MAX_METADATA_BYTES:
            raise ValidationError(f"metadata is over {MAX_METADATA_BYTES} bytes.")
        return metadata

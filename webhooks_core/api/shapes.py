"""Requests and responses of what owners ask of their webhooks, in both products."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from webhooks_core.models import Event
from webhooks_core.network.errors import Outcome
from webhooks_core.owners.deliveries import State
from webhooks_core.owners.resending import AT_ONCE, Selection
from webhooks_core.web.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    TimeField,
    TimeParameter,
    check_period,
)
from webhooks_core.web.pages import PageQuery

Json = dict[str, Any]


class SearchQuery(PageQuery):
    """The page of the contract's list, and what of it. A product adds `status`."""

    event_id = StrictCharField(
        required=False,
        max_length=64,
        error_messages={"max_length": "event_id has more than 64 characters."},
        help_text="Of one event.",
    )

    def validate_event_id(self, text: str) -> str:
        if "\0" in text:  # PostgreSQL takes none
            raise ValidationError("event_id must not hold NUL.")
        return text


def search_query(states: Mapping[str, State]) -> type[SearchQuery]:
    """Return the query of a product whose statuses have these names."""
    status = StrictChoiceField(
        [(name, name) for name in states],
        required=False,
        error_messages={"invalid_choice": f"status is one of {', '.join(states)}."},
        help_text="`failed_undelivered`: and the event has not arrived by a resend.",
    )
    return type("DeliverySearchQuery", (SearchQuery,), {"status": status})


class ResendRequest(serializers.Serializer[Any]):
    since = TimeParameter(help_text="RFC 3339: events from this time on.")
    until = TimeParameter(
        required=False, help_text="RFC 3339: events before this time. Missing: now."
    )
    status = StrictChoiceField(
        [(each.value, each.name) for each in Selection],
        default=Selection.FAILED.value,
        error_messages={"invalid_choice": "status is one of failed, missed."},
        help_text="`failed`: what failed and has not arrived since. `missed`: what was "
        "published while the subscription was disabled or inactive.",
    )
    dry_run = StrictBooleanField(
        default=False, help_text="True: count, and send nothing."
    )

    def validate(self, attrs: Json) -> Json:
        return check_period(attrs)


class ResendResult(serializers.Serializer[Any]):
    count = serializers.IntegerField(
        help_text=f"Events that are, or would be, sent: at most {AT_ONCE:,}. After as many, "
        "another call goes on."
    )


class RotationRequest(serializers.Serializer[Any]):
    overlap_s = StrictIntegerField(
        "overlap_s must be an integer from 0 to 604800.",
        required=False,
        min_value=0,
        max_value=604_800,
        help_text="For how long the old secret signs too, in seconds.",
    )

    @property
    def overlap(self) -> timedelta | None:
        seconds = self.validated_data.get("overlap_s")
        return None if seconds is None else timedelta(seconds=seconds)


class RotatedShape(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="`whsec_…`, shown only here.")
    old_secret_ends_at = TimeField(allow_null=True, help_text="Null: at once.")


class HeadersField(serializers.DictField):
    """Names and values, all of them strings."""

    child = StrictCharField(allow_blank=True)
    default_error_messages = dict.fromkeys(
        ("null", "not_a_dict", "invalid"),
        "custom_headers must be an object of strings.",
    )

    def to_internal_value(self, data: Any) -> Any:
        is_object = isinstance(data, dict)
        if not is_object or not all(isinstance(text, str) for text in data.values()):
            self.fail("not_a_dict", input_type="")
        return super().to_internal_value(data)


class SettingsRequest(serializers.Serializer[Any]):
    custom_headers = HeadersField(
        required=False, help_text="Replace all that were set before."
    )
    standard_headers = StrictBooleanField(
        required=False,
        help_text="True: deliveries have those of Standard Webhooks too.",
    )

    def validate(self, attrs: Json) -> Json:
        if not attrs:
            raise ValidationError("custom_headers or standard_headers is required.")
        return attrs


class SettingsShape(serializers.Serializer[Any]):
    custom_headers = serializers.DictField(
        child=serializers.CharField(), help_text="Their values are masked."
    )
    standard_headers = serializers.BooleanField(
        help_text="Whether deliveries have those of Standard Webhooks too."
    )


class AcceptedShape(serializers.Serializer[Any]):
    id = serializers.CharField(
        source="public_id", help_text="The delivery that is sent."
    )
    event_id = serializers.CharField(
        source="event.public_id", help_text="The event; it stays the same."
    )


@extend_schema_field(
    {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
)
class HeaderPairsField(serializers.Field[Any, Any, Any, Any]):
    """Headers as an object; the values of one name are joined by commas."""

    def to_representation(self, value: list[tuple[str, str]]) -> dict[str, str]:
        headers: dict[str, str] = {}
        for name, text in value:
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        return headers


class AttemptShape(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="attempt.number", help_text="From 1.")
    started_at = TimeField(source="attempt.started_at", help_text="UTC.")
    duration_ms = serializers.IntegerField(
        source="attempt.duration_ms", help_text="Until its end."
    )
    url = serializers.CharField(help_text="Where it went.")
    request_headers = HeaderPairsField(
        help_text="As they were sent; `sensitive` ones masked."
    )
    response_status = serializers.IntegerField(
        source="attempt.status_code",
        allow_null=True,
        help_text="Null: there was no response.",
    )
    response_headers = HeaderPairsField(
        allow_null=True, help_text="Null: for operators alone."
    )
    response_text = serializers.CharField(
        allow_null=True, help_text="The first 4 KiB. Null: for operators alone."
    )
    error_class = serializers.CharField(
        help_text="Empty after a success; otherwise one of "
        + ", ".join(kind for kind in Outcome if kind != Outcome.OK)
        + "."
    )
    error = serializers.CharField(
        source="attempt.error", help_text="What failed, in words."
    )


class SentEventShape(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="Its id.")
    type = serializers.CharField(help_text="Its type.")
    created_at = TimeField(help_text="When it was published.")
    payload = serializers.SerializerMethodField(
        help_text="The exact body, as it is signed."
    )

    def get_payload(self, event: Event) -> str:
        return bytes(event.body).decode(errors="replace")


class DetailsShape(serializers.Serializer[Any]):
    """A delivery in full (owners/details.py). A product adds `delivery`, the record of its list."""

    trigger = serializers.CharField(
        source="delivery.trigger",
        help_text="`event`, `test`, or `manual`: it was resent.",
    )
    next_attempt_at = TimeField(
        source="delivery.next_attempt_at",
        allow_null=True,
        help_text="Null: there is none.",
    )
    waits = serializers.CharField(
        help_text="Why it is not sent yet; empty if it ended."
    )
    event = SentEventShape(source="delivery.event", help_text="What is sent.")
    attempts = AttemptShape(many=True, help_text="Oldest first.")
    sensitive = serializers.ListField(
        child=serializers.CharField(), help_text="Headers whose values are masked."
    )

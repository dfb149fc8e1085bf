"""Requests of what owners ask of their webhooks, in both products."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import (
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from webhooks_core.models import ReplayJob
from webhooks_core.owners import replay_jobs
from webhooks_core.owners.delivery_search import DeliveryFilter, State, StatusClass
from webhooks_core.web.fields import (
    CountField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictListField,
)
from webhooks_core.web.owner_examples import TIME, request_example
from webhooks_core.web.pages import ManyField

MAX_TYPES = 50
RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
YEARS = range(1970, 9000)
Json = dict[str, Any]


@extend_schema_field({"type": "string", "format": "date-time"})
class TimeParameter(StrictCharField):
    """A time with its zone, as RFC 3339 writes it."""

    default_error_messages = {
        "time": "{field} must be a time such as 2026-11-21T03:20:00Z."
    }

    def to_internal_value(self, data: Any) -> datetime:
        text = super().to_internal_value(data)
        if not RFC3339.fullmatch(text):
            self.fail("time")
        # Microseconds are what the database keeps.
        text = re.sub(r"(\.\d{6})\d+", r"\1", text.upper())
        try:
            at = datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail("time")
        if at.year not in YEARS:
            self.fail("time")
        return at


def too_long(name: str) -> dict[str, Any]:
    """Return the message of a parameter with more than it may have."""
    return {"max_length": f"{name} has more than {{max_length}} characters or values."}


class StrictQuery(serializers.Serializer[Any]):
    """Query parameters of an address that knows no other ones."""

    def to_internal_value(self, data: Any) -> Any:
        for name in data:
            if name not in self.fields:
                message = f"{name} is not a parameter of this address."
                raise ValidationError({name: message})
        return super().to_internal_value(data)


class CursorQuery(StrictQuery):
    cursor = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=32,
        error_messages=too_long("cursor"),
        help_text="`next_cursor` of the page before. Empty or missing: the first page.",
    )
    page_size = CountField(default=20, maximum=100, help_text="Items in a page.")


class PeriodFields(serializers.Serializer[Any]):
    since = TimeParameter(
        required=False, help_text="RFC 3339: events from this time on."
    )
    until = TimeParameter(
        required=False, help_text="RFC 3339: events before this time."
    )

    def validate(self, attrs: Json) -> Json:
        since, until = attrs.get("since"), attrs.get("until")
        if since and until and since >= until:
            raise ValidationError("since must be before until.")
        return attrs


class EventTypeField(StrictCharField):
    """The name of an event type, known or not. PostgreSQL takes no NUL."""

    def __init__(self) -> None:
        super().__init__(max_length=128, error_messages=too_long("an event type"))

    def to_internal_value(self, data: Any) -> str:
        name: str = super().to_internal_value(data)
        if "\0" in name:
            raise ValidationError("an event type must not hold NUL.")
        return name


class TypesField(ManyField):
    """Names of event types."""

    child = EventTypeField()


class EventFields(PeriodFields):
    event_type = TypesField(
        required=False,
        max_length=MAX_TYPES,
        error_messages=too_long("event_type"),
        help_text="May be repeated: any of them.",
    )


class SearchQuery(EventFields):
    """The filters of deliveries. A product adds `status`, whose values are its own."""

    event_id = StrictCharField(
        required=False,
        max_length=64,
        error_messages=too_long("event_id"),
        help_text="Of one event.",
    )
    status_class = StrictChoiceField(
        [(known.value, known.value) for known in StatusClass],
        required=False,
        error_messages={
            "invalid_choice": f"status_class is one of {', '.join(StatusClass)}."
        },
        help_text="Of the latest response; `none`: there was none.",
    )
    cursor = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=32,
        error_messages=too_long("cursor"),
        help_text="`next_cursor` of the page before; in place of `page`.",
    )
    page_size = CountField(default=20, maximum=100, help_text="Items in a page.")

    def wanted(self, states: Mapping[str, State]) -> DeliveryFilter:
        """Return the filter of a valid query."""
        data = self.validated_data
        status, status_class = data.get("status"), data.get("status_class")
        return DeliveryFilter(
            states=frozenset({states[status]} if status else ()),
            event_types=tuple(data.get("event_type", ())),
            event_id=data.get("event_id", ""),
            since=data.get("since"),
            until=data.get("until"),
            status_class=StatusClass(status_class) if status_class else None,
        )


def search_query(states: Mapping[str, State]) -> type[SearchQuery]:
    """Return the query of a product whose statuses have these names."""
    status = StrictChoiceField(
        [(name, name) for name in states],
        required=False,
        error_messages={"invalid_choice": f"status is one of {', '.join(states)}."},
        help_text="`failed_undelivered`: and the event has not arrived by a resend.",
    )
    return type("DeliverySearchQuery", (SearchQuery,), {"status": status})


class StoredEventQuery(CursorQuery, EventFields):
    """The filters of stored events."""


class WhyQuery(StrictQuery):
    event_id = StrictCharField(
        max_length=64,
        error_messages=too_long("event_id"),
        help_text="The `id` of the event.",
    )


class NoQuery(StrictQuery):
    """No parameter at all."""


@extend_schema_serializer(
    examples=[
        request_example({"since": TIME, "status": "failed", "dry_run": True}),
    ]
)
class ReplayRequestSerializer(PeriodFields):
    since = TimeParameter(help_text="RFC 3339: events from this time on.")
    until = TimeParameter(
        required=False, help_text="RFC 3339: events before this time. Missing: now."
    )
    status = StrictChoiceField(
        ReplayJob.Kind.choices,
        error_messages={"invalid_choice": "status is one of failed, missing."},
        help_text="`failed`: what failed and did not arrive. `missing`: what was skipped "
        "while the subscription was disabled or inactive.",
    )
    event_types = StrictListField(
        child=StrictCharField(max_length=128, error_messages=too_long("an event type")),
        required=False,
        max_length=MAX_TYPES,
        error_messages=too_long("event_types"),
        help_text="Only these types. Empty or missing: all that it receives.",
    )
    dry_run = StrictBooleanField(
        default=False, help_text="True: count, and send nothing."
    )

    def validate(self, attrs: Json) -> Json:
        return super().validate({"until": timezone.now(), **attrs})

    def selection(self) -> replay_jobs.Selection:
        data = self.validated_data
        return replay_jobs.Selection(
            kind=ReplayJob.Kind(data["status"]),
            since=data["since"],
            until=data["until"],
            event_types=data.get("event_types", []),
        )


@extend_schema_serializer(examples=[request_example({"overlap_s": 0})])
class RotationRequestSerializer(serializers.Serializer[Any]):
    overlap_s = StrictIntegerField(
        "overlap_s must be an integer from 0 to 604800.",
        required=False,
        min_value=0,
        max_value=604_800,
        help_text="For how long the old secret signs too, in seconds.",
    )


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


@extend_schema_serializer(
    examples=[
        request_example(
            {"custom_headers": {"X-Environment": "staging"}, "standard_headers": True}
        )
    ]
)
class SettingsRequestSerializer(serializers.Serializer[Any]):
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

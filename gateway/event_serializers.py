"""Reading what is sent to `POST /v1/events`: one event or several, and checks of each."""

from __future__ import annotations

from typing import Any

import orjson
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError

from gateway import event_schemas
from gateway.chat.core import json_numbers
from gateway.events import MAX_DATA_DEPTH, is_deeper
from gateway.identity import NAME_RULE, is_name
from gateway.publishing import MAX_EVENTS, NewEvent, publishable
from webhooks_core.web.errors import BadRequestError, PayloadTooLargeError, failure_of
from webhooks_core.web.fields import StrictBooleanField, StrictCharField
from webhooks_core.web.parsers import StrictJSONParser

MAX_BODY_BYTES = 1_048_576
MAX_DATA_BYTES = 262_144


class EventsParser(StrictJSONParser):
    """Parses JSON of at most 1 MiB, whose integers keep all their digits."""

    max_bytes = MAX_BODY_BYTES

    def loads(self, body: bytes) -> Any:
        try:
            return json_numbers.loads_finite(body)
        except orjson.JSONDecodeError:
            raise
        except ValueError as error:
            raise ParseError(f"The body is not usable: {error}.") from error


class NewEventSerializer(serializers.Serializer[Any]):
    """One event; `context["path"]` is its place in the body, for errors."""

    type = StrictCharField(help_text="A type that the configuration lets you publish.")
    data = serializers.DictField(  # type: ignore[assignment] # the class gives its fields away
        help_text=f"As the schema of the type says. At most {MAX_DATA_BYTES} bytes.",
        error_messages={
            "required": "data is required.",
            **dict.fromkeys(("null", "not_a_dict"), "data must be an object."),
        },
    )
    id = StrictCharField(
        required=False,
        help_text=f"Your name of the event: {NAME_RULE}. One that is kept already is published once.",
    )

    def validate_type(self, name: str) -> str:
        known = publishable()
        if name not in known:
            names = ", ".join(known) or "none"
            raise ValidationError(f"type cannot be published; known are {names}.")
        return name

    def validate_id(self, name: str) -> str:
        if not is_name(name):
            raise ValidationError(f"id must have {NAME_RULE}.")
        return name

    def validate_data(self, data: dict[str, Any]) -> dict[str, Any]:
        if is_deeper(data, MAX_DATA_DEPTH):
            raise ValidationError(
                f"data is nested deeper than {MAX_DATA_DEPTH} levels."
            )
        if len(json_numbers.dumps(data)) > MAX_DATA_BYTES:
            raise PayloadTooLargeError(
                f"{self.context['path']}data is over {MAX_DATA_BYTES} bytes."
            )
        return data

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kind = publishable()[attrs["type"]]
        if fault := event_schemas.first_fault(kind, attrs["data"]):
            raise ValidationError(fault)
        return attrs


class NewEventListSerializer(serializers.Serializer[Any]):
    events = NewEventSerializer(many=True, help_text=f"1 to {MAX_EVENTS} events.")


class PublishQuery(serializers.Serializer[Any]):
    """The query parameters of `POST /v1/events`."""

    dry_run = serializers.ChoiceField(
        choices=["true", "false"],
        default="false",
        help_text="`true`: nothing is stored or sent; the response says who would get it.",
        error_messages={"invalid_choice": "dry_run must be true or false."},
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(self.initial_data.keys() - self.fields.keys()):
            raise ValidationError(f"The query parameter {unknown[0]} is unknown.")
        return {"dry_run": attrs["dry_run"] == "true"}


class PublishedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        allow_null=True, help_text="Of the event; null in a dry run."
    )
    duplicate = StrictBooleanField(help_text="True: it was published before.")
    subscriptions = serializers.ListField(
        child=serializers.CharField(), help_text="The subscriptions that get it."
    )


class PublishedListSerializer(serializers.Serializer[Any]):
    events = PublishedSerializer(many=True, help_text="In the order of the request.")


def read_events(body: dict[str, Any]) -> list[NewEvent]:
    """Return the events of a body, `{events: […]}` or one of them. Raises 400 or 413."""
    if "events" not in body:
        return [_read(body, "")]
    items = body["events"]
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_EVENTS:
        raise BadRequestError(f"events must be an array of 1 to {MAX_EVENTS} events.")
    return [_read(item, f"events[{number}].") for number, item in enumerate(items)]


def _read(item: Any, path: str) -> NewEvent:
    if not isinstance(item, dict):
        raise BadRequestError(f"{path.removesuffix('.')} must be an object.")
    serializer = NewEventSerializer(data=item, context={"path": path})
    try:
        serializer.is_valid(raise_exception=True)
    except ValidationError as error:
        failure = failure_of(error)
        raise BadRequestError(f"{path}{failure and failure.message}") from error
    return NewEvent(**serializer.validated_data, path=path)

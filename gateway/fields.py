"""What bodies have: rows, texts, event types, filters."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.webhooks import subscribable
from webhooks_core import filters
from webhooks_core.web.fields import (
    StrictCharField,
    StrictChoiceField,
    StrictListField,
    TimeField,
)

Row = TypeVar("Row", bound=models.Model)


class ShownModel(serializers.ModelSerializer[Row]):
    """The columns of a row that a response shows, times as everywhere in the gateway."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.DateTimeField: TimeField,
    }

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        """Leave out how large a number the database stores: each kind of database differs."""
        field, arguments = super().build_standard_field(field_name, model_field)
        arguments.pop("max_value", None)
        return field, arguments


class StoredText(StrictCharField):
    """A text without NUL, which a database refuses."""

    default_error_messages = {"nul": "{field} must not hold NUL."}

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if "\0" in text:
            self.fail("nul")
        return text


@extend_schema_field({"type": "array", "items": {"type": "string"}})
class EventTypesField(StrictListField):
    """Names of event types, also of those that a configuration declares."""

    def __init__(self, **kwargs: Any) -> None:
        names = subscribable()
        unknown = f"{{field}}: unknown event type; known are {', '.join(names)}."
        child = StrictChoiceField(
            choices=names, error_messages={"invalid_choice": unknown}
        )
        super().__init__(child=child, **kwargs)


@extend_schema_field(
    {"type": "object", "additionalProperties": {}, "maxProperties": 100}
)
class FilterField(serializers.Field[Any, Any, Any, Any]):
    """A filter of events as `webhooks_core.filters` compiles it; null for none."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            filters.compiled(data)
        except filters.FilterError as error:
            raise ValidationError(str(error)) from error
        return data or None

    def to_representation(self, value: Any) -> Any:
        return value

"""The fields of requests about filters: a filter, and an event to test it with."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from webhooks_core import filters


@extend_schema_field({"type": ["object", "string"], "additionalProperties": {}})
class EventField(serializers.Field[Any, Any, Any, Any]):
    """An envelope, or the id of a stored event."""

    default_error_messages = {
        "invalid": "event must be an object or the id of an event.",
        "null": "event must be an object or the id of an event.",
        "required": "event is required.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict | str):
            self.fail("invalid")
        return data


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

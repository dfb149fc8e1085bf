"""Serializer fields that take a JSON value without coercion or trimming.

A text in `error_messages` may hold `{field}`: the field's name; of a list's child, the list's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.core.validators import ProhibitNullCharactersValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from webhooks_core.times import iso

_POSITIVE_INTEGER = re.compile(r"0*([1-9][0-9]*)")
_YEARS = range(1970, 9000)
# A number of more digits is larger than any count.
_MAX_DIGITS = 12


class _NamedField(serializers.Field[Any, Any, Any, Any]):
    default_error_messages = {"required": "{field} is required."}

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        name = self.field_name or getattr(self.parent, "field_name", None)
        super().fail(key, field=name, **kwargs)


class _StrictField(_NamedField):
    """Refuses values of another JSON type, and null with the same message."""

    json_type: type

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        super().fail("invalid" if key == "null" else key, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, self.json_type):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictCharField(_StrictField, serializers.CharField):
    """A JSON string of any characters: the serializer decides on NUL and blanks."""

    json_type = str
    default_error_messages = {
        "invalid": "{field} must be a string.",
        "blank": "{field} must not be empty.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)
        self.validators = [
            validator
            for validator in self.validators
            if not isinstance(
                validator,
                (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator),
            )
        ]


class StrictChoiceField(_StrictField, serializers.ChoiceField):
    """A JSON string that is one of the choices."""

    json_type = str
    default_error_messages = {
        "invalid": "{field} must be a string.",
        "invalid_choice": "{field} is unknown.",
    }


class StrictBooleanField(_StrictField, serializers.BooleanField):
    """JSON's true or false."""

    json_type = bool
    default_error_messages = {"invalid": "{field} must be true or false."}


class StrictListField(_StrictField, serializers.ListField):
    """A JSON array of strings; equal items count once, and the first unknown one is the error."""

    json_type = list
    default_error_messages = {"invalid": "{field} must be an array of strings."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list) and not all(isinstance(item, str) for item in data):
            self.fail("invalid")
        return super().to_internal_value(data)

    def run_child_validation(self, data: list[Any]) -> list[Any]:
        return list(dict.fromkeys(map(self.child.run_validation, data)))


class CountField(_NamedField, serializers.IntegerField):
    """A query parameter of at least 1; a larger one than `maximum` is the maximum."""

    default_error_messages = {"invalid": "{field} must be an integer of at least 1."}

    def __init__(self, *, maximum: int | None = None, **kwargs: Any) -> None:
        super().__init__(min_value=1, **kwargs)
        self.maximum = maximum
        if maximum is not None:
            self.help_text = f"Above {maximum}: {maximum}."

    def to_internal_value(self, data: Any) -> int:
        match = _POSITIVE_INTEGER.fullmatch(data)
        if match is None:
            self.fail("invalid")
        digits = match[1]
        number = int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS
        return number if self.maximum is None else min(number, self.maximum)


class StrictIntegerField(serializers.IntegerField):
    """An integer of JSON within bounds; each fault has the same text."""

    def __init__(self, text: str, **options: Any) -> None:
        kinds = ("invalid", "null", "min_value", "max_value")
        super().__init__(error_messages=dict.fromkeys(kinds, text), **options)

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:  # not a text or true
            self.fail("invalid")
        return data


class TimeField(serializers.DateTimeField):
    """A time as `2026-11-21T03:20:00.000000Z`, in responses only."""

    def to_representation(self, value: datetime) -> str:
        return iso(value)


@extend_schema_field({"type": "string", "format": "date-time"})
class TimeParameter(StrictCharField):
    """A time with its zone, as ISO 8601 and RFC 3339 write it."""

    default_error_messages = {
        "time": "{field} must be a time such as 2026-11-21T03:20:00Z."
    }

    def to_internal_value(self, data: Any) -> datetime:
        text = super().to_internal_value(data)
        try:
            at = datetime.fromisoformat(text.upper())
            if at.tzinfo is None or at.year not in _YEARS:
                self.fail("time")
            return at.astimezone(UTC)
        except ValueError:
            self.fail("time")


def check_period(data: dict[str, Any]) -> dict[str, Any]:
    """Return fields whose times are in order. Raises ValidationError."""
    since, until = data.get("since"), data.get("until")
    if since and until and since >= until:
        raise ValidationError("since must be before until.")
    return data

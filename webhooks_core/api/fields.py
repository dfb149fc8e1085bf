"""Serializer fields that take a JSON value as it is, without coercion or trimming.

A text in `error_messages` may hold `{field}`: the field's name; of a list's child, the list's.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, NoReturn

from django.core.validators import ProhibitNullCharactersValidator
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from webhooks_core.formats import iso

_POSITIVE_INTEGER = re.compile(r"0*([1-9][0-9]*)")
# A number of more digits is larger than any count.
_MAX_DIGITS = 12


class _NamedField(serializers.Field[Any, Any, Any, Any]):
    default_error_messages = {"required": "{field} is required."}

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        name = self.field_name or getattr(self.parent, "field_name", None)
        super().fail(key, field=name, **kwargs)


class StrictCharField(_NamedField, serializers.CharField):
    """A JSON string of any characters: NUL and blanks are for the serializer to judge."""

    default_error_messages = {
        "invalid": "{field} must be a string.",
        "null": "{field} must be a string.",
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

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class StrictChoiceField(_NamedField, serializers.ChoiceField):
    """A JSON string that is one of the choices."""

    default_error_messages = {
        "invalid": "{field} must be a string.",
        "null": "{field} must be a string.",
        "invalid_choice": "{field} is unknown.",
    }

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        value: str = super().to_internal_value(data)
        return value


class StrictBooleanField(_NamedField, serializers.BooleanField):
    """JSON's true or false."""

    default_error_messages = {
        "invalid": "{field} must be true or false.",
        "null": "{field} must be true or false.",
    }

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class StrictListField(_NamedField, serializers.ListField):
    """A JSON array; equal items count once. The first wrong item decides the error."""

    default_error_messages = {
        "not_a_list": "{field} must be an array of strings.",
        "null": "{field} must be an array of strings.",
    }

    def run_child_validation(self, data: list[Any]) -> list[Any]:
        return list(dict.fromkeys(map(self.child.run_validation, data)))


class CountField(_NamedField, serializers.IntegerField):
    """A query parameter of at least 1; above `maximum` it is the maximum."""

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


class TimeField(serializers.DateTimeField):
    """A time as `2026-11-21T03:20:00.000000Z`; for responses alone."""

    def to_representation(self, value: datetime) -> str:
        return iso(value)

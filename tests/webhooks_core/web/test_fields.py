"""Strict fields: no coercion, no trimming, one sentence for the first wrong field."""

from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from webhooks_core.web.errors import failure_of
from webhooks_core.web.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictListField,
)

STRINGS = "names must be an array of strings."
ITEM: dict[str, Any] = {"invalid_choice": "unknown"}


class Form(serializers.Serializer[Any]):
    title = StrictCharField(required=False)
    note = StrictCharField(required=False, allow_blank=True, max_length=3)
    active = StrictBooleanField(required=False)
    names = StrictListField(
        required=False, child=StrictChoiceField(["a", "b"], error_messages=ITEM)
    )


def message_of(**data: object) -> str:
    form = Form(data=data)
    with pytest.raises(ValidationError) as raised:
        form.is_valid(raise_exception=True)
    failure = failure_of(raised.value)
    assert failure is not None
    assert failure.status == 400
    return failure.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"title": 5}, "title must be a string."),
        ({"title": True}, "title must be a string."),
        ({"title": None}, "title must be a string."),
        ({"title": ""}, "title must not be empty."),
        ({"active": "true"}, "active must be true or false."),
        ({"active": 1}, "active must be true or false."),
        ({"active": None}, "active must be true or false."),
        ({"names": "a"}, STRINGS),
        ({"names": {"a": 1}}, STRINGS),
        ({"names": None}, STRINGS),
        ({"names": ["a", None]}, STRINGS),
        ({"names": ["a", 5]}, STRINGS),
        ({"names": ["a", ""]}, "unknown"),
        ({"names": ["c", 5]}, STRINGS),
        ({"active": 1, "title": 5}, "title must be a string."),
    ],
)
def test_the_first_wrong_field_decides_the_message(data, message):
    assert message_of(**data) == message


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"title": " \x00 "}, " \x00 "),
        ({"title": "\ud800"}, "\ud800"),
        ({"note": ""}, ""),
        ({"active": False}, False),
        ({"names": []}, []),
        ({"names": ["b", "a", "b"]}, ["b", "a"]),
    ],
)
def test_a_value_is_not_coerced(data, value):
    form = Form(data=data)
    form.is_valid(raise_exception=True)
    assert [*form.validated_data.values()] == [value]


def test_a_text_may_have_a_limit():
    assert "3" in message_of(note="abcd")

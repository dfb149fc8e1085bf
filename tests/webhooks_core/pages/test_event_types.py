"""The event types that an owner can receive."""

from __future__ import annotations

import pytest

from webhooks_core.pages.event_types import Field, fields
from webhooks_core.templatetags.owners import marked
from webhooks_core.web.json_schema import INTEGER, array_of, described, object_of


def test_each_type_is_described_with_its_fields_and_a_sample(ada):
    page = ada.page("/event-types")
    assert "summary.completed" in page
    assert "<code>transcript.segments[].speaker</code>" in page
    assert "evt_sample_" in page
    assert "webhook.ping" in page


def test_the_fields_of_a_schema_are_listed_with_those_inside_them():
    schema = object_of(
        ["id"],
        id=described("The id."),
        parts=described("All.", array_of(object_of(n=described("How many.", INTEGER)))),
    )
    assert list(fields(schema)) == [
        Field("id", "string", True, "The id."),
        Field("parts[]", "array of objects", False, "All."),
        Field("parts[].n", "integer", True, "How many."),
    ]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": ["string", "null"]}, "string or null"),
        ({"const": "denied"}, "string"),
        ({"enum": [50, 80, None]}, "integer or null"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}, True]}, "number or string"),
        ({"description": "Any."}, "anything"),
        (True, "anything"),
        ({"type": "array"}, "array"),
        ({"type": "array", "items": True}, "array"),
        ({"type": "array", "items": [{"type": "string"}]}, "array"),
    ],
)
def test_every_schema_of_a_field_has_a_type_in_words(schema, kind):
    [field] = fields({"properties": {"a": schema}})
    assert field.kind == kind


def test_a_description_marks_code():
    assert marked("`a<b` & c") == "<code>a&lt;b</code> &amp; c"

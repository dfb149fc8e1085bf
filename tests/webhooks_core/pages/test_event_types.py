"""The event types that an owner can receive."""

from __future__ import annotations

from webhooks_core.pages.event_types import Field, fields
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

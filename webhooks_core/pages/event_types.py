"""The event types of the product: what each means, its fields, and a complete sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core.ids import public_id
from webhooks_core.owners import payloads
from webhooks_core.pages.base import OwnerView
from webhooks_core.profiles import EventContext, EventType, WebhookProfile
from webhooks_core.times import iso

JSON_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    list: "array",
    dict: "object",
}


class Field(NamedTuple):
    """A field of an event's data; `name` is its path, such as `summaries[].label`."""

    name: str
    kind: str
    is_required: bool
    description: str


class EventTypes(OwnerView):
    def get(self, request: HttpRequest) -> HttpResponse:
        profile, owner = self.owner.profile, self.owner.subscriptions.owner
        types = [
            {
                "type": event_type,
                "is_offered": profile.matches([event_type.name], event_type.name),
                "fields": list(fields(event_type.schema)),
                "schema": payloads.pretty_json(event_type.schema),
                "sample": payloads.pretty_json(sample(profile, owner, event_type)),
            }
            for event_type in profile.event_types.values()
        ]
        return self.render("event_types", {"types": types, "profile": profile})


def sample(profile: WebhookProfile, owner: str, event_type: EventType) -> Any:
    """Return a complete body, as a delivery of this type would have it."""
    context = EventContext(
        id=public_id(f"{profile.event_prefix}sample_"),
        type=event_type.name,
        owner=owner,
        created_at=iso(timezone.now()),
        data=event_type.sample,
        metadata=profile.sample_metadata,
    )
    return profile.envelope(context)


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[Field]:
    """Yield the fields of an object's schema, each followed by those inside it."""
    required = schema.get("required", ())
    for name, any_schema in schema.get("properties", {}).items():
        field = inner = _as_object(any_schema)
        kind, suffix = " or ".join(types_of(field)) or "anything", ""
        if kind == "array":
            inner, suffix = _as_object(field.get("items")), "[]"
            kind = " of ".join(["array", *(f"{item}s" for item in types_of(inner))])
        shown = f"{path}{name}{suffix}"
        yield Field(shown, kind, name in required, field.get("description", ""))
        yield from fields(inner, f"{shown}.")


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows; none if it says nothing about them."""
    types = schema.get("type")
    if isinstance(types, str):
        return [types]
    if types is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        types = [JSON_TYPES[type(value)] for value in values]
        for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            types += types_of(_as_object(choice))
    return list(dict.fromkeys(types))


def _as_object(schema: Any) -> Mapping[str, Any]:
    """Return a schema; an empty one in place of `true`, of `false` and of one for each place."""
    return schema if isinstance(schema, Mapping) else {}

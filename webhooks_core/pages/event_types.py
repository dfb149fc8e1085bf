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
    for name, field in schema.get("properties", {}).items():
        kind, inner, suffix = field.get("type", ""), field, ""
        if kind == "array":
            inner, suffix = field.get("items", {}), "[]"
            kind = f"array of {inner.get('type', 'anything')}s"
        shown = f"{path}{name}{suffix}"
        yield Field(shown, str(kind), name in required, field.get("description", ""))
        yield from fields(inner, f"{shown}.")

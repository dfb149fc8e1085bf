"""The form of an endpoint's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
from django import forms
from django.core import signing
from django.core.exceptions import ValidationError

from webhooks_core import filters
from webhooks_core.models import Endpoint
from webhooks_core.owners import payloads
from webhooks_core.profiles import EventType, WebhookProfile
from webhooks_core.web.errors import ApiError

SALT = "webhooks_core.pages.settings"
KEPT_S = 900
EXTRA = {"description", "active", "filter"}


def offered(profile: WebhookProfile) -> list[EventType]:
    """Return the event types that an endpoint receives when it lists them."""
    return [
        event_type
        for name, event_type in profile.event_types.items()
        if profile.matches([name], name)
    ]


def receives_all(profile: WebhookProfile) -> bool:
    """Return True if an empty list of event types means all of them."""
    return any(profile.matches([], name) for name in profile.event_types)


class FilterField(forms.CharField):
    """A filter of events as JSON; empty for none."""

    widget = forms.Textarea

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            source = orjson.loads(text)
            filters.compiled(source)
        except orjson.JSONDecodeError as error:
            raise ValidationError(f"The filter is not JSON: {error}.") from error
        except filters.FilterError as error:
            message = str(error)
            raise ValidationError(f"{message[:1].upper()}{message[1:]}") from error
        return source or None

    def prepare_value(self, value: Any) -> Any:
        return payloads.pretty_json(value) if isinstance(value, dict) else value


class TypesForm(forms.Form):
    """A form with a choice of the event types that a product offers."""

    event_types = forms.MultipleChoiceField(required=False)

    def __init__(self, profile: WebhookProfile, **options: Any) -> None:
        super().__init__(**options)
        self.types = offered(profile)
        types: Any = self.fields["event_types"]
        types.choices = [(each.name, each.name) for each in self.types]

    @property
    def chosen(self) -> list[str]:
        """Return the event types that are selected in the form as it is shown."""
        return list(self["event_types"].value() or ())


class EndpointForm(TypesForm):
    """Where events go, and which. The service of the product checks the URL."""

    field_order = ["url"]
    url = forms.CharField(label="URL", error_messages={"required": "Enter a URL."})
    description = forms.CharField(max_length=1000, required=False)
    active = forms.BooleanField(required=False)
    filter = FilterField(required=False)

    def __init__(
        self,
        profile: WebhookProfile,
        *,
        extra: Sequence[str],
        data: Any = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        """`extra` names the fields that the product has besides the URL and the event types."""
        super().__init__(profile, data=data, initial=_initial(profile, endpoint))
        self.endpoint = endpoint
        for name in EXTRA - set(extra):
            del self.fields[name]

    def values(self) -> dict[str, Any]:
        """Return what the service of the product takes."""
        values = dict(self.cleaned_data)
        if self.endpoint is not None:
            # What is never sent may be listed, and is not offered here.
            shown = {each.name for each in self.types}
            kept = [name for name in self.endpoint.event_types if name not in shown]
            values["event_types"] = [*values["event_types"], *kept]
        return values

    def kept(self) -> str:
        """Return a query that keeps valid values while the password is asked for.

        It is signed, so that no link of somebody else fills the form.
        """
        values = {"endpoint": self._public_id, "values": self.cleaned_data}
        return urlencode({"kept": signing.dumps(values, salt=SALT, compress=True)})

    def restore(self, kept: str) -> None:
        """Fill the form with what `kept()` returned for the same endpoint."""
        try:
            values = signing.loads(kept, salt=SALT, max_age=KEPT_S)
        except signing.BadSignature:
            return
        if values["endpoint"] == self._public_id:
            self.initial |= values["values"]

    @property
    def _public_id(self) -> str:
        return self.endpoint.public_id if self.endpoint else ""

    def refuse(self, error: ApiError) -> None:
        """Show why the service has refused the values."""
        self.add_error("url", ValidationError(str(error.detail)))


def _initial(profile: WebhookProfile, endpoint: Endpoint | None) -> dict[str, Any]:
    if endpoint is None:
        names = [each.name for each in offered(profile)]
        if receives_all(profile):  # all but those that must be named
            names = [name for name in names if profile.matches([], name)]
        return {"event_types": names, "active": True}
    return {
        "url": endpoint.url,
        "event_types": endpoint.event_types,
        "description": endpoint.description,
        "active": endpoint.active,
        "filter": endpoint.filter,
    }

"""The forms of an endpoint: its settings, and a new secret."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from webhooks_core.errors import ApiError
from webhooks_core.models import Endpoint
from webhooks_core.owners import repairs
from webhooks_core.profiles import WebhookProfile

EXTRA = {"description", "active"}
ALL, THESE = "all", "these"
LONGEST_H = repairs.LONGEST_OVERLAP // timedelta(hours=1)
DEFAULT_H = repairs.DEFAULT_OVERLAP // timedelta(hours=1)


class RotationForm(forms.Form):
    overlap_h = forms.IntegerField(
        min_value=0, max_value=LONGEST_H, initial=DEFAULT_H, label="Overlap"
    )


class EndpointForm(forms.Form):
    """Where events go, and which. The service of the product checks the URL."""

    url = forms.CharField(label="URL", error_messages={"required": "Enter a URL."})
    which = forms.ChoiceField(choices=[(ALL, "All events"), (THESE, "These:")])
    event_types = forms.MultipleChoiceField(required=False)
    description = forms.CharField(max_length=1000, required=False)
    active = forms.BooleanField(required=False)

    def __init__(
        self,
        profile: WebhookProfile,
        *,
        extra: Sequence[str],
        data: Any = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        """`extra` names the fields that the product has besides the URL and the event types."""
        self.profile, self.types, self.endpoint = profile, profile.offered, endpoint
        super().__init__(data, initial=self._initial())
        for name in EXTRA - set(extra):
            del self.fields[name]
        types: Any = self.fields["event_types"]
        types.choices = [(each.name, each.name) for each in self.types]

    def _initial(self) -> dict[str, Any]:
        if self.endpoint is None:
            return {"which": ALL, "event_types": [], "active": True}
        listed = self.endpoint.event_types
        has_all = self.profile.receives_all(listed)
        return {
            "url": self.endpoint.url,
            "which": ALL if has_all else THESE,
            "event_types": [] if has_all else listed,
            "description": self.endpoint.description,
            "active": self.endpoint.active,
        }

    @property
    def chosen(self) -> list[str]:
        """Return the event types that are selected in the form as it is shown."""
        return list(self["event_types"].value() or ())

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if cleaned.get("which") == THESE and not (
            cleaned.get("event_types") or self._receives_only_tests()
        ):
            self.add_error("event_types", "Choose at least one, or all events.")
        return cleaned

    def _receives_only_tests(self) -> bool:
        """Return True for an endpoint without event types, as programs can make: it may stay so."""
        listed = self.endpoint.event_types if self.endpoint else None
        return listed == [] and not self.profile.receives_all(listed)

    def values(self) -> dict[str, Any]:
        """Return what the service of the product takes."""
        values = dict(self.cleaned_data)
        if values.pop("which") == ALL:
            values["event_types"] = self.profile.everything
        return values

    def refuse(self, error: ApiError) -> None:
        """Show why the service has refused the values, in words of the page."""
        text = str(error.detail)
        if text.startswith("url "):
            text = f"The URL {text.removeprefix('url ')}"
        self.add_error("url", ValidationError(text))

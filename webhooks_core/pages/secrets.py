"""The signing secret of an endpoint: shown and rotated, after the password was given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core import endpoints
from webhooks_core.models import Endpoint
from webhooks_core.owners import repairs
from webhooks_core.pages.base import OwnerView
from webhooks_core.pages.owners import Capability
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.web.errors import ConflictError

LONGEST_H = repairs.LONGEST_OVERLAP // timedelta(hours=1)
DEFAULT_H = repairs.DEFAULT_OVERLAP // timedelta(hours=1)


class RotationForm(forms.Form):
    overlap_h = forms.IntegerField(
        min_value=0, max_value=LONGEST_H, initial=DEFAULT_H, label="Overlap"
    )


class Secret(OwnerView):
    """The page asks what to do; POST shows the secret, or rotates it (`action`).

    The secret is in the response to a POST alone: no address shows it.
    """

    sees_with = acts_with = Capability.VIEW_SECRET
    refused_to = ("endpoint", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        return self.door.confirm(request, request.path) or self._page(endpoint)

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        if asked := self.door.confirm(request, request.path):
            return asked
        if request.POST.get("action") == "rotate":
            return self._rotate(endpoint)
        self.check_word("show")
        try:
            secret = repairs.show_secret(endpoint, by=self.owner.by)
        except SecretUnreadableError as error:
            raise ConflictError(
                "The secret cannot be read here. Rotate it, or ask the operator."
            ) from error
        return self._page(endpoint, secret=secret)

    def _rotate(self, endpoint: Endpoint) -> HttpResponse:
        repairs.check_not_declared(endpoint)
        if not self.owner.may(Capability.MANAGE):
            raise ConflictError("Nothing was changed: you may only look.")
        self.check_word("rotate")
        form = RotationForm(self.request.POST)
        hours = 0
        if endpoints.may_overlap(endpoint):
            if not form.is_valid():
                return self._page(endpoint, form=form, status=400)
            hours = form.cleaned_data["overlap_h"]
        overlap = timedelta(hours=hours)
        rotated = repairs.rotate(endpoint, overlap=overlap, by=self.owner.by)
        context: dict[str, Any] = {
            "secret": rotated.secret,
            "is_new": True,
            "hours": hours,
        }
        return self._page(endpoint, **context)

    def _page(
        self, endpoint: Endpoint, *, status: int = 200, **context: Any
    ) -> HttpResponse:
        context = {"form": RotationForm()} | context
        context |= {
            "endpoint": endpoint,
            "secrets": endpoint.endpointsecret_set.current(timezone.now()),
            "may_overlap": endpoints.may_overlap(endpoint),
            "longest_overlap_h": LONGEST_H,
        }
        return self.render("secret", context, status=status)

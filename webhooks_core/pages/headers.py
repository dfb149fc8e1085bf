"""The headers that an owner adds to the deliveries of an endpoint; their values are not shown again."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from webhooks_core import endpoints
from webhooks_core.models import Endpoint
from webhooks_core.network.custom_headers import MAX_VALUE, HeaderError
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.endpoints import refuse_static
from webhooks_core.secrets import SecretUnreadableError

UNREADABLE = "The stored headers cannot be read here: ask the operator."


class HeaderForm(forms.Form):
    name = forms.CharField(
        max_length=64, error_messages={"required": "Enter the name of a header."}
    )
    value = forms.CharField(max_length=MAX_VALUE, required=False)


class Headers(OwnerView):
    """Lists names; POST adds or replaces one, removes one, or switches the standard ones."""

    refused_to = ("endpoint", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        return self._page(self.owner.endpoint(endpoint_id), HeaderForm())

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        refuse_static(endpoint)
        act = {"remove": self._remove, "standard": self._standard}
        return act.get(request.POST.get("action", ""), self._add)(endpoint)

    def _add(self, endpoint: Endpoint) -> HttpResponse:
        form = HeaderForm(self.request.POST)
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        name, value = form.cleaned_data["name"], form.cleaned_data["value"]
        try:
            self._change(endpoint, remove=name, add={name: value})
        except HeaderError as error:
            form.add_error(None, f"{str(error)[:1].upper()}{str(error)[1:]}.")
            return self._page(endpoint, form, status=400)
        return self.done("The header is sent from now on.", self.request.path)

    def _remove(self, endpoint: Endpoint) -> HttpResponse:
        self._change(endpoint, remove=self.request.POST.get("name", ""), add={})
        return self.done("The header is no longer sent.", self.request.path)

    def _standard(self, endpoint: Endpoint) -> HttpResponse:
        wanted = "wanted" in self.request.POST
        try:
            endpoints.set_standard_headers(endpoint, wanted=wanted, by=self.owner.by)
        except (ValueError, SecretUnreadableError) as error:
            text = "Nothing was changed: the secret is not of the form that they need."
            raise RefusedError(text) from error
        return self.done("The settings were saved.", self.request.path)

    def _change(self, endpoint: Endpoint, *, remove: str, add: dict[str, str]) -> None:
        """Replace a header, whatever the case of its name. Raises HeaderError."""
        with transaction.atomic():
            # Locked: two changes at once would lose one.
            rows = Endpoint.objects.select_for_update().filter(deleted_at=None)
            current = rows.get(pk=endpoint.pk)
            kept = {
                name: value
                for name, value in headers_of(current).items()
                if name.lower() != remove.lower()
            }
            endpoints.set_custom_headers(current, kept | add, by=self.owner.by)

    def _page(
        self, endpoint: Endpoint, form: HeaderForm, *, status: int = 200
    ) -> HttpResponse:
        context = {
            "endpoint": endpoint,
            "form": form,
            "names": sorted(headers_of(endpoint)),
        }
        return self.render("headers", context, status=status)


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers of an endpoint. Raises RefusedError if they cannot be decrypted."""
    encrypted: Any = endpoint.custom_headers
    if encrypted is None:
        return {}
    try:
        headers: dict[str, str] = json.loads(encrypted.decrypt())
    except SecretUnreadableError as error:
        raise RefusedError(UNREADABLE) from error
    return headers

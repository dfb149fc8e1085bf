"""The rotation of an endpoint's signing secret: a page to confirm it, and one with the new secret."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from webhooks_core import endpoints, profiles
from webhooks_core.admin import base
from webhooks_core.admin.base import HistoryAdmin, RefusedError
from webhooks_core.models import Endpoint

LONGEST_OVERLAP_H = 168
DIGITS = re.compile(r"[0-9]{1,6}")


class RotationAdmin(HistoryAdmin[Endpoint]):
    """The admin of endpoints, as far as the rotation needs it."""

    pages = {"confirm_rotation": "<int:pk>/rotate-secret/confirm/"}

    def check_operable(self, obj: Endpoint) -> None:
        if obj.deleted_at is not None:
            raise RefusedError("The endpoint is deleted.")

    def confirm_rotation(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Explain the effect of a rotation on the receiver, and ask for confirmation."""
        if not self.has_act_permission(request):
            raise PermissionDenied
        endpoint = self.row(request, pk)
        self.check_operable(endpoint)
        _check_rotatable(endpoint)
        return self._rotation_page(request, endpoint, "rotate", "Rotate the secret")

    def rotate_secret(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        """Show the new secret, in this response only."""
        _check_rotatable(endpoint)
        may_overlap = endpoints.may_overlap(endpoint)
        text = request.POST.get("hours", "") if may_overlap else "0"
        if not DIGITS.fullmatch(text) or (hours := int(text)) > LONGEST_OVERLAP_H:
            raise RefusedError(
                f"The overlap must be 0 to {LONGEST_OVERLAP_H} whole hours."
            )
        secret = endpoints.rotate_secret(
            endpoint, overlap=timedelta(hours=hours), by=base.operator(request)
        )
        self.log_change(request, endpoint, f"Rotated the secret; overlap {hours} h.")
        context = {"secret": secret, "hours": hours}
        return self._rotation_page(
            request, endpoint, "secret", "New signing secret", **context
        )

    def _rotation_page(
        self,
        request: HttpRequest,
        endpoint: Endpoint,
        template: str,
        title: str,
        **context: Any,
    ) -> HttpResponse:
        profile = profiles.find(endpoint.profile)
        return self.render(
            request,
            f"admin/webhooks_core/endpoint/{template}.html",
            title=title,
            shown=endpoint,
            disable_after=profile and profile.disable_after,
            may_overlap=endpoints.may_overlap(endpoint),
            longest_overlap=LONGEST_OVERLAP_H,
            **context,
        )


def _check_rotatable(endpoint: Endpoint) -> None:
    if source := static_source(endpoint):
        raise RefusedError(f"Its secret is in {source}: change it there.")


def static_source(endpoint: Endpoint) -> str:
    """Return where a static endpoint is declared; "" for all others."""
    if endpoint.static_key is None:
        return ""
    profile = profiles.find(endpoint.profile)
    return profile.static_source if profile else "the configuration of its product"

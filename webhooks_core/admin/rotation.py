"""Rotating an endpoint's signing secret: a page that asks, and one that shows the new secret."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from webhooks_core import endpoints
from webhooks_core.admin import display
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.models import Endpoint

LONGEST_OVERLAP_H = 168

Operation = Callable[..., HttpResponse]


def living(operation: Operation) -> Operation:
    """Refuse an operation on an endpoint that is deleted."""

    @wraps(operation)
    def refusing(
        self: RotationAdmin, request: HttpRequest, endpoint: Endpoint
    ) -> HttpResponse:
        if endpoint.deleted_at is not None:
            return self.back(request, endpoint, "The endpoint is deleted.", "ERROR")
        return operation(self, request, endpoint)

    return refusing


class RotationAdmin(HistoryAdmin[Endpoint]):
    """Adds the rotation to the admin of endpoints."""

    def get_urls(self) -> list[URLPattern]:
        page = path(
            "<int:pk>/rotate-secret/confirm/",
            self.admin_site.admin_view(self._confirm),
            name="webhooks_core_endpoint_confirm_rotation",
        )
        return [page, *super().get_urls()]

    def _confirm(self, request: HttpRequest, pk: int) -> HttpResponse:
        if not self.has_act_permission(request):
            raise PermissionDenied
        return self.confirm_rotation(request, self.row(request, pk))

    def back(
        self, request: HttpRequest, endpoint: Endpoint, text: str, level: str = "INFO"
    ) -> HttpResponse:
        """Tell what happened on the endpoint's page."""
        self.message_user(request, text, level)
        return redirect("admin:webhooks_core_endpoint_change", endpoint.pk)

    @living
    def confirm_rotation(
        self, request: HttpRequest, endpoint: Endpoint
    ) -> HttpResponse:
        """Say what a rotation does to the receiver, and ask for it."""
        if endpoint.static_key is not None:
            return self._refuse_static(request, endpoint)
        return self._rotation_page(request, endpoint, "rotate", "Rotate the secret")

    @living
    def rotate_secret(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        """Answer the new secret on this one page; no other ever shows it."""
        if endpoint.static_key is not None:
            return self._refuse_static(request, endpoint)
        given = (
            request.POST.get("hours", "") if endpoints.may_overlap(endpoint) else "0"
        )
        hours = _whole(given, most=LONGEST_OVERLAP_H)
        if hours is None:
            text = f"The overlap must be 0 to {LONGEST_OVERLAP_H} whole hours."
            return self.back(request, endpoint, text, "ERROR")
        secret = endpoints.rotate_secret(endpoint, overlap=timedelta(hours=hours))
        self.log_change(request, endpoint, f"Rotated the secret; overlap {hours} h.")
        return self._rotation_page(
            request,
            endpoint,
            "secret",
            "New signing secret",
            secret=secret,
            hours=hours,
        )

    def _refuse_static(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        text = f"Its secret stands in {static_source(endpoint)}: change it there."
        return self.back(request, endpoint, text, "ERROR")

    def _rotation_page(
        self,
        request: HttpRequest,
        endpoint: Endpoint,
        template: str,
        title: str,
        **more: Any,
    ) -> HttpResponse:
        dialect = display.dialect(endpoint)
        context = self.admin_site.each_context(request) | {
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "shown": endpoint,
            "disable_after": dialect.disable_after if dialect else None,
            "may_overlap": endpoints.may_overlap(endpoint),
            "longest_overlap": LONGEST_OVERLAP_H,
        }
        page = f"admin/webhooks_core/endpoint/{template}.html"
        return TemplateResponse(request, page, context | more)


def static_source(endpoint: Endpoint) -> str:
    """Return where a static endpoint is declared; nothing for all others."""
    if endpoint.static_key is None:
        return ""
    dialect = display.dialect(endpoint)
    return dialect.static_source if dialect else "the configuration of its product"


def _whole(text: str, *, most: int) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        return None
    return number if (number := int(text)) <= most else None

"""The admin site: the login of all other pages, two steps for staff, and the lists that operators use."""

from __future__ import annotations

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from recording.accounts.adapters import has_second_factor

NEEDS_TWO_STEPS = (
    "The admin needs a two-step login: set it up here, or log out and in again."
)
# Tables that libraries register, and that operators need no page for; some hold secrets.
HIDDEN = (
    *("django_q.OrmQ", "django_q.Schedule", "django_q.Success"),
    *("oauth2_provider.AccessToken", "oauth2_provider.IDToken"),
    "recording_oauth.Grant",
)


class Site(admin.AdminSite):
    index_title = "Administration"

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if super().has_permission(request) and not self.has_permission(request):
            messages.warning(request, NEEDS_TWO_STEPS)
            return redirect("mfa_index")
        if request.user.is_authenticated and not super().has_permission(request):
            messages.warning(request, "This account has no rights in the admin.")
            return redirect(settings.LOGIN_REDIRECT_URL)
        response: HttpResponse = secure_admin_login(super().login)(
            request, extra_context
        )
        return response

    def has_permission(self, request: HttpRequest) -> bool:
        is_enough = not settings.REQUIRE_STAFF_SECOND_FACTOR
        return super().has_permission(request) and (
            is_enough or has_second_factor(request)
        )

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        return redirect("account_change_password")

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[Any]:
        """Return the lists by app, and before those of webhooks the page of what fails now."""
        groups: list[Any] = super().get_app_list(request, app_label)
        for group in groups:
            names = [model["object_name"] for model in group["models"]]
            if group["app_label"] == "webhooks_core" and "Endpoint" in names:
                address = reverse("admin:webhooks_core_endpoint_failing")
                failing = {"name": "Failing endpoints", "object_name": "Failing"}
                page = {**failing, "admin_url": address, "view_only": True}
                group["models"].insert(0, page)
        return groups


def discover() -> None:
    """Load the admin of every app: with the URL map, and not in commands that need none."""
    admin.autodiscover()
    for model in map(apps.get_model, HIDDEN):
        if admin.site.is_registered(model):  # the cluster's queue only without Redis
            admin.site.unregister(model)

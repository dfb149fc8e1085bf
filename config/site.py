"""The admin site: one group for OAuth, whose tables two apps bring."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse

from recording.oauth import logins

# What the toolkit keeps, and what recording builds on it: the second names the group.
TOOLKIT, OWN = "oauth2_provider", "recording_oauth"


class Site(AdminSite):
    """Django's own, with limits for logins, and the toolkit's tables among those that extend it."""

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return logins.limited(super().login)(request, extra_context)

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[Any]:
        if app_label in {TOOLKIT, OWN}:
            both = self.get_app_list(request)
            return [group for group in both if group["app_label"] in {TOOLKIT, OWN}]
        groups: list[Any] = super().get_app_list(request, app_label)
        found = {group["app_label"]: group for group in groups}
        if {TOOLKIT, OWN} <= found.keys():
            models = found[OWN]["models"] + found[TOOLKIT]["models"]
            found[OWN]["models"] = sorted(models, key=lambda model: model["name"])
            groups.remove(found[TOOLKIT])
        return groups

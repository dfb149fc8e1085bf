"""The admin site: no list is counted without bound, and OAuth's tables form one group."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse

from recording.oauth import logins
from recording.oauth.forms import AdminLoginForm

# What the toolkit keeps, and what recording builds on it: the second names the group.
TOOLKIT, OWN = "oauth2_provider", "recording_oauth"


class Site(AdminSite):
    """Django's own: logins limited, lists capped, the toolkit's tables among those that extend it."""

    login_form = AdminLoginForm

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return logins.limited(super().login)(request, extra_context)

    def register(
        self, model_or_iterable: Any, admin_class: Any = None, **options: Any
    ) -> None:
        """Register models whose lists are counted to a bound, whoever wrote their pages."""
        # Not above: its package registers pages here.
        from webhooks_core.admin.base import CappedPaginator

        super().register(model_or_iterable, admin_class, **options)
        for pages in self._registry.values():
            vars(pages).update(paginator=CappedPaginator, show_full_result_count=False)

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

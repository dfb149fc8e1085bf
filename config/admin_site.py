"""The admin site: lists are counted to a bound, and OAuth's tables form one group."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import smart_split

from recording.accounts.adapters import has_second_factor

# django-oauth-toolkit's app, and recording's app that extends it and names the group.
TOOLKIT, OWN = "oauth2_provider", "recording_oauth"
# The sections, and the lists of webhooks, in the order of their use; all others follow.
SECTIONS = ("webhooks_core", "recording", "gateway", "gateway_chat", "catalog", OWN)
WEBHOOKS = ("Endpoint", "Delivery", "Event")
NEEDS_TWO_STEPS = (
    "The admin needs a two-step login: set it up here, or log out and in again."
)


# Of the query of a list: a search, or the value of a filter. Each word and each value is a condition.
MAX_LENGTH, MAX_WORDS, MAX_VALUES = 255, 16, 16

# The id of a row that an action is to have: databases refuse more than 64 bits.
ROW = re.compile(r"[0-9]{1,18}|[0-9a-f]{32}")  # the latter are tasks of django-q

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Site(AdminSite):
    """Django's admin with limited logins, capped lists and one group for both OAuth apps."""

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

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Say of a list whose search or filters are too long that they are, and read nothing."""

        @wraps(view)
        def bounded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if not all(map(ROW.fullmatch, request.POST.getlist(ACTION_CHECKBOX_NAME))):
                raise BadRequest("A chosen row has no such id.")
            if not (refusal := _refusal(request)):
                return _answer(view, request, *args, **kwargs)
            title = {"title": "The search is too long", "refusal": refusal}
            context = self.each_context(request) | title
            return TemplateResponse(request, "admin/refused.html", context)

        return super().admin_view(cast("View", bounded), cacheable)

    def register(
        self, model_or_iterable: Any, admin_class: Any = None, **options: Any
    ) -> None:
        """Register models, and have the lists of every app count to a bound."""
        # Imported here, because its package registers pages at this site.
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
        by_label = {group["app_label"]: group for group in groups}
        if {TOOLKIT, OWN} <= by_label.keys():
            models = by_label[OWN]["models"] + by_label[TOOLKIT]["models"]
            by_label[OWN]["models"] = sorted(models, key=lambda model: model["name"])
            groups.remove(by_label[TOOLKIT])
        if webhooks := by_label.get("webhooks_core"):
            webhooks["models"] = _with_dashboard(webhooks["models"])
        groups.sort(key=lambda group: _place(group["app_label"], SECTIONS))
        return groups


def _answer(view: View, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
    try:
        return view(request, *args, **kwargs)
    except (OverflowError, DataError) as error:
        if not _is_list(request):
            raise
        raise BadRequest("No database takes this value in a filter.") from error


def _with_dashboard(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lists of webhooks by use, after the page of the endpoints that fail."""
    models = sorted(models, key=lambda model: _place(model["object_name"], WEBHOOKS))
    if not any(model["object_name"] == "Endpoint" for model in models):
        return models
    address = reverse("admin:webhooks_core_endpoint_failing")
    failing = {"name": "Failing endpoints", "object_name": "Failing"}
    return [{**failing, "admin_url": address, "view_only": True}, *models]


def _place(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def _is_list(request: HttpRequest) -> bool:
    match = request.resolver_match
    name = (match and match.url_name) or ""
    return name.endswith("_changelist") or name == "autocomplete"


def _refusal(request: HttpRequest) -> str:
    """Return why the query of a list is too long, or nothing; other pages search nothing."""
    if not _is_list(request):
        return ""
    lists = list(request.GET.lists())
    texts = [text for key, values in lists for text in (key, *values)]
    if any(len(text) > MAX_LENGTH for text in texts):
        return f"A search or a filter has at most {MAX_LENGTH} characters: a part of the text finds it."
    if sum(len(values) for _, values in lists) > MAX_VALUES:
        return f"A list has at most {MAX_VALUES} filters at once."
    searches = (request.GET.get(key, "") for key in ("q", "term"))
    if any(len(list(smart_split(text))) > MAX_WORDS for text in searches):
        return f"A search has at most {MAX_WORDS} words: leave some out, or put a phrase in quotes."
    return ""

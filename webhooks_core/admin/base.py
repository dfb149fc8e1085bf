"""The bases of the admin's lists: counted and searched to a bound, read-only; and how rows appear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.changes import Actor
from webhooks_core.errors import ApiError
from webhooks_core.models import Endpoint, Event
from webhooks_core.owners.state import EndpointState
from webhooks_core.pages.base import secret_once
from webhooks_core.templatetags.owners import stamped

# The maximum of rows that a list counts and shows.
LISTED_AT_MOST = 10_000
# The number of newest ids among which a part of a text is searched.
SEARCHED_AT_MOST = 50_000
# The number of rows of one action.
SELECTED_AT_MOST = 500

M = TypeVar("M", bound=Model)


class CappedPaginator(Paginator[Any]):
    """Pages of the first LISTED_AT_MOST rows; the others are not counted."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:LISTED_AT_MOST].count())


def operator(request: HttpRequest) -> Actor:
    """Return the user of a request as the one who does something."""
    return Actor("operator", request.user.get_username())


Act = Callable[[Any, Any, Actor], str]


def row_action(description: str) -> Callable[[Act], Any]:
    """Return a decorator that makes an action of a list of a method that acts on one row.

    The method returns what it has done, or raises an error of the API. The action needs the
    permission to change the model, and returns to the page of a row whose button it was.
    """

    def declare(act: Act) -> Any:
        def action(
            self: HistoryAdmin[Any], request: HttpRequest, queryset: QuerySet[Any]
        ) -> HttpResponse | None:
            rows = list(queryset.order_by("pk")[: SELECTED_AT_MOST + 1])
            if len(rows) > SELECTED_AT_MOST:
                text = f"Nothing was done: choose at most {SELECTED_AT_MOST} at once."
                self.message_user(request, text, "ERROR")
                return None
            done: Counter[str] = Counter()
            for row in rows:
                try:
                    text = act(self, row, operator(request))
                except (ApiError, ObjectDoesNotExist) as error:
                    self.message_user(request, f"{error} ({row})", "WARNING")
                else:
                    self.log_change(request, row, text)
                    done[text] += 1
            for text, count in done.items():
                self.message_user(request, f"{text} ({count} of {len(rows)})")
            page = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
            is_button = "button" in request.POST and rows
            return redirect(page, rows[0].pk) if is_button else None

        return admin.action(action, description=description, permissions=["act"])

    return declare


class CappedAdmin(admin.ModelAdmin[M]):
    """A list that is counted to a bound; a part of a text is searched among the newest rows."""

    paginator = CappedPaginator
    list_max_show_all = 0
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    # Fields with an index: their complete values are searched among all rows.
    indexed: tuple[str, ...] = ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[M], search_term: str
    ) -> tuple[QuerySet[M], bool]:
        term = search_term.strip()
        rows, may_repeat = super().get_search_results(request, queryset, term)
        if not term:
            return rows, may_repeat
        newest = self.model._default_manager.order_by("-pk").values_list("pk")[:1]
        oldest = max((pk for (pk,) in newest), default=0) - SEARCHED_AT_MOST
        exact = Q(pk=None)
        for field in self.indexed:
            exact |= Q(**{field: term})
        return rows.filter(pk__gt=oldest) | queryset.filter(exact), may_repeat


class ReadOnlyAdmin(CappedAdmin[M]):
    """Rows that cannot be created, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class HistoryAdmin(ReadOnlyAdmin[M]):
    """Read-only rows, with actions in their list and as buttons on the page of a row.

    Actions need the permission to change the model, although there is no form (`permissions=["act"]`).
    """

    ordering = ("-pk",)
    sortable_by = ()
    change_form_template = "admin/webhooks_core/page.html"

    class Media:
        css: ClassVar = {"all": ("webhooks_core/admin.css",)}
        js = ("webhooks_core/pages.js",)

    def has_act_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    def render(
        self, request: HttpRequest, template: str, *, title: str, **context: Any
    ) -> HttpResponse:
        """Return a page in the frame of the admin."""
        frame = self.admin_site.each_context(request)
        context |= {"title": title, "opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, frame | context)

    def buttons(self, obj: M) -> Collection[str]:
        """Return the actions that make sense for a row."""
        return ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (obj := kwargs.get("obj")) is not None:
            shown, choices = self.buttons(obj), self.get_action_choices(request, [])
            context["buttons"] = [choice for choice in choices if choice[0] in shown]
            context["secret"] = secret_once(request)
        return super().render_change_form(request, context, *args, **kwargs)


def badge(tone: str, text: str) -> SafeString:
    """Return a coloured label; `tone` is success, pending, error or neutral."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def time(at: datetime | None) -> SafeString | None:
    """Return a time to the second, in UTC."""
    return stamped(at, f"{at:%Y-%m-%d %H:%M:%S}") if at else None


def pre(text: str) -> SafeString:
    return format_html('<pre tabindex="0">{}</pre>', text)


def host_and_path(url: str) -> str:
    """Return a url without its scheme and query, as people tell endpoints apart."""
    return url.partition("://")[2].partition("?")[0]


def deliveries_of(event: Event) -> SafeString:
    """Return a link, since there may be thousands."""
    address = reverse("admin:webhooks_core_delivery_changelist")
    return format_html('<a href="{}?q={}">all deliveries</a>', address, event.public_id)


def state(shown: EndpointState) -> SafeString:
    """Return the state of an endpoint: its word, since when, and why."""
    since = f"for {shown.duration}: " if shown.since else ""
    label = badge(shown.state.tone, shown.state.value)
    return format_html("{} {}{} {}", label, since, shown.reason, shown.answer)


def owner_names(rows: list[Endpoint]) -> dict[int, str]:
    """Return the product and the owner of each row, by its key, with one query per product."""
    names: dict[tuple[str, str], str] = {}
    for name in {row.profile for row in rows}:
        profile = profiles.find(name)
        if profile is not None and profile.names_of is not None:
            owners = [row.owner for row in rows if row.profile == name]
            named = profile.names_of(owners).items()
            names |= {(name, owner): text for owner, text in named}
    return {
        row.pk: f"{row.profile}: {names.get((row.profile, row.owner), row.owner)}"
        for row in rows
    }

"""The bases of the admin's lists: counted to a bound, searched to a bound, and read-only history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from webhooks_core import changes
from webhooks_core.changes import Actor
from webhooks_core.owners.repairs import RefusedError

# The maximum of rows that a list counts and shows.
LISTED_AT_MOST = 10_000
# The number of newest ids among which a part of a text is searched.
SEARCHED_AT_MOST = 50_000

M = TypeVar("M", bound=Model)


class CappedPaginator(Paginator[Any]):
    """Pages of the first LISTED_AT_MOST rows; the others are not counted."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:LISTED_AT_MOST].count())


def operator(request: HttpRequest) -> Actor:
    """Return the user of a request as the one who does something."""
    return changes.operator(request.user.get_username())


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
        newest = self.model._default_manager.order_by("-pk").values_list("pk")[:1]  # noqa: SLF001 - public by use
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
    """Read-only rows with operations, whose buttons are on the page of a row.

    An operation is a POST, and a method that takes a request and a row and returns a response. It
    needs the permission to change the model, although there is no form.
    """

    # Methods, and the texts of their buttons.
    operations: ClassVar[Mapping[str, str]] = {}
    ordering = ("-pk",)
    sortable_by = ()
    change_form_template = "admin/webhooks_core/page.html"

    class Media:
        css: ClassVar = {"all": ("webhooks_core/admin.css",)}
        js = ("webhooks_core/pages.js",)

    def has_act_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        may_view = super().has_view_permission(request, obj)
        return may_view or self.has_act_permission(request)

    def get_urls(self) -> list[URLPattern]:
        operations = [
            self.url(
                f"<int:pk>/{name.replace('_', '-')}/",
                name,
                partial(self._operate, name),
            )
            for name in self.operations
        ]
        return [*operations, *super().get_urls()]

    def url(
        self, route: str, name: str, view: Callable[..., HttpResponseBase]
    ) -> URLPattern:
        """Return the address of a page of this admin."""
        full_name = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        return path(route, self.admin_site.admin_view(view), name=full_name)

    def _operate(self, name: str, request: HttpRequest, pk: int) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        try:
            response: HttpResponse = getattr(self, name)(request, self.row(request, pk))
        except RefusedError as error:
            return self.back(request, pk, str(error), "ERROR")
        except ObjectDoesNotExist as error:  # deleted meanwhile with its account
            raise Http404 from error
        return response

    def row(self, request: HttpRequest, pk: int) -> M:
        """Return a row that this user may see. Raises Http404 and PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        # Databases refuse an id of more than 64 bits.
        obj = self.get_object(request, str(pk)) if pk < 2**63 else None
        if obj is None:
            raise Http404
        return obj

    def done(self, request: HttpRequest, obj: M, text: str) -> HttpResponse:
        """Log an operation, and redirect to the page of its row with a message."""
        self.log_change(request, obj, text)
        return self.back(request, obj.pk, text)

    def back(
        self, request: HttpRequest, pk: int, message: str, level: str = "INFO"
    ) -> HttpResponse:
        """Redirect to the page of a row, with a message."""
        self.message_user(request, message, level)
        page = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return redirect(page, pk)

    def render(
        self, request: HttpRequest, template: str, *, title: str, **context: Any
    ) -> HttpResponse:
        """Return a page in the frame of the admin."""
        frame = self.admin_site.each_context(request)
        context |= {"title": title, "opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, frame | context)

    def shown_operations(self, obj: M) -> Mapping[str, str]:
        """Return the operations that make sense for a row."""
        return self.operations

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None and self.has_act_permission(request):
            prefix = f"admin:{self.opts.app_label}_{self.opts.model_name}"
            shown = self.shown_operations(obj)
            context["buttons"] = [(f"{prefix}_{name}", shown[name]) for name in shown]
        return super().render_change_form(request, context, *args, **kwargs)

"""What the pages have in common: nothing is edited, nothing is counted without bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.urls import URLPattern, path

# A list goes no further back than this: whoever looks for older rows knows an id or a filter.
LISTED_AT_MOST = 10_000

M = TypeVar("M", bound=Model)


class CappedPaginator(Paginator[Any]):
    """Pages of the first LISTED_AT_MOST rows, counted no further than that."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:LISTED_AT_MOST].count())

    @property
    def is_capped(self) -> bool:
        return self.count == LISTED_AT_MOST


class ShownAdmin(admin.ModelAdmin[M]):
    """Rows to look at: none is made, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class HistoryAdmin(ShownAdmin[M]):
    """Rows to look at. What may be done with one is an operation: a POST of its own.

    Operations are the names of methods that take a request and a row. They need the
    permission to change the model, which opens no form here.
    """

    operations: tuple[str, ...] = ()
    # What an empty list tells: where its rows come from.
    empty_hint = ""
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    ordering = ("-pk",)
    # The pages have templates of their own; this keeps the form behind them small.
    fields: ClassVar[Any] = ("public_id",)

    class Media:
        css: ClassVar = {"all": ("webhooks_core/admin.css",)}
        js = ("webhooks_core/pages.js",)

    def has_act_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return super().has_view_permission(request, obj) or self.has_act_permission(
            request
        )

    def get_urls(self) -> list[URLPattern]:
        return [
            *(self._url(name) for name in self.operations),
            *super().get_urls(),
        ]

    def _url(self, name: str) -> URLPattern:
        view = partial(self._operate, getattr(self, name))
        return path(
            f"<int:pk>/{name.replace('_', '-')}/",
            self.admin_site.admin_view(view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
        )

    def _operate(
        self,
        operation: Callable[[HttpRequest, M], HttpResponse],
        request: HttpRequest,
        pk: int,
    ) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        return operation(request, self.row(request, pk))

    def row(self, request: HttpRequest, pk: int) -> M:
        """Return a row that this user may see. Raises Http404 and PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        # Larger than any id, and than what a database takes for one.
        obj = self.get_object(request, str(pk)) if pk < 2**63 else None
        if obj is None:
            raise Http404
        return obj

"""What the pages have in common: nothing is edited, nothing is counted without bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from heapq import nlargest
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.urls import URLPattern, path

from webhooks_core.models.lookups import among

# A list goes no further back than this: whoever looks for older rows knows an id or a filter.
LISTED_AT_MOST = 10_000
# A filter or a search that no index serves looks at so many ids, the newest.
SEARCHED_AT_MOST = 50_000
NEWEST_FIRST = ("-pk",)

M = TypeVar("M", bound=Model)


class Found(NamedTuple):
    """What a search has found: the ids, newest first, and the rows that hold them."""

    rows: QuerySet[Any]
    ids: list[int]


class CappedPaginator(Paginator[Any]):
    """Pages of the first LISTED_AT_MOST rows, counted no further than that."""

    @property
    def found(self) -> Found | None:
        """Return what a NewestChangeList has left on its rows."""
        found: Found | None = vars(self.object_list).get("found")
        return found

    @cached_property
    def count(self) -> int:
        if self.found:
            return len(self.found.ids)
        rows: Any = self.object_list
        return int(rows.order_by()[:LISTED_AT_MOST].count())

    @property
    def is_capped(self) -> bool:
        return self.count == LISTED_AT_MOST

    def page(self, number: int | str) -> Page[Any]:
        """Return a page; of ids that are known, only its own are asked for."""
        rows: Any = self.object_list
        if not self.found or set(rows.query.order_by) != {*NEWEST_FIRST}:
            return super().page(number)
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        ids = self.found.ids[start : start + self.per_page]
        return Page(self.found.rows.filter(among(ids)), number, self)


class NewestChangeList(ChangeList):
    """A list whose filters and search have found the newest ids first, and no more than it shows."""

    model_admin: CappedAdmin[Any]
    # Whether older rows may fit too.
    is_cut = False

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Any]:
        rows = super().get_queryset(request, exclude_parameters)
        if not self.params:
            return rows
        ids = self.model_admin.newest(self, rows)
        self.is_cut = self.is_cut or len(ids) == LISTED_AT_MOST
        root = self.apply_select_related(self.root_queryset)
        found = root.filter(among(ids)).order_by(*rows.query.order_by)
        vars(found)["found"] = Found(root.order_by(*NEWEST_FIRST), ids)
        return found


def newest_ids(rows: QuerySet[Any]) -> list[int]:
    """Return the ids of the newest rows, as many as a list shows."""
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:LISTED_AT_MOST])


class CappedAdmin(admin.ModelAdmin[M]):
    """A list that is counted and shown to LISTED_AT_MOST, and searched to SEARCHED_AT_MOST."""

    paginator = CappedPaginator
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    # Fields with an index: a whole value is found among all rows.
    indexed: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return NewestChangeList

    def newest(self, shown: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return the ids of the newest rows that fit, newest first; `rows` are all that fit."""
        last = shown.root_queryset.order_by("-pk").values_list("pk", flat=True).first()
        oldest = (last or 0) - SEARCHED_AT_MOST
        shown.is_cut = oldest > 0
        found = set(newest_ids(rows.filter(pk__gt=oldest)))
        term = shown.query.strip()
        for field in self.indexed if term else ():
            found.update(newest_ids(rows.filter(**{field: term})))
        return nlargest(LISTED_AT_MOST, found)


class ShownAdmin(CappedAdmin[M]):
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
    list_per_page = 50
    sortable_by = ()
    ordering = NEWEST_FIRST
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
        try:
            return operation(request, self.row(request, pk))
        except ObjectDoesNotExist as error:  # it went with its account meanwhile
            raise Http404 from error

    def row(self, request: HttpRequest, pk: int) -> M:
        """Return a row that this user may see. Raises Http404 and PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        # Larger than any id, and than what a database takes for one.
        obj = self.get_object(request, str(pk)) if pk < 2**63 else None
        if obj is None:
            raise Http404
        return obj

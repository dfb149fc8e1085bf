"""The base of the admin's pages: read-only history, and lists that are counted up to a limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from heapq import nlargest
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
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
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from webhooks_core.models.lookups import among
from webhooks_core.owners import changes
from webhooks_core.owners.changes import Actor
from webhooks_core.owners.id_ranges import IdRange

# The maximum of rows that a list shows; an id or a filter finds older ones.
LISTED_AT_MOST = 10_000
# The number of newest ids that a filter or a search without an index examines.
SEARCHED_AT_MOST = 50_000
NEWEST_FIRST = ("-pk",)
# Rows with a lower id than this: where a list goes on behind its last page.
BEFORE = "before"
ID = re.compile("[0-9]{1,18}")

M = TypeVar("M", bound=Model)


class Matches(NamedTuple):
    """The ids that a search matches, newest first, and all rows of the table."""

    rows: QuerySet[Any]
    ids: list[int]


class CappedPaginator(Paginator[Any]):
    """Pages of the first LISTED_AT_MOST rows; the others are not counted."""

    @property
    def matches(self) -> Matches | None:
        """Return the matches that NewestChangeList has attached to the rows."""
        return getattr(self.object_list, "matches", None)

    @cached_property
    def count(self) -> int:
        if self.matches:
            return len(self.matches.ids)
        rows: Any = self.object_list
        return int(rows.order_by()[:LISTED_AT_MOST].count())

    @property
    def is_capped(self) -> bool:
        return self.count == LISTED_AT_MOST

    def page(self, number: int | str) -> Page[Any]:
        """Return a page; if the ids are known, query no others."""
        rows: Any = self.object_list
        if not self.matches or set(rows.query.order_by) != {*NEWEST_FIRST}:
            return super().page(number)
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        ids = self.matches.ids[start : start + self.per_page]
        return Page(self.matches.rows.filter(among(ids)), number, self)


class Chip(NamedTuple):
    """A filter or search that a list has, and the address without it."""

    text: str
    address: str


class NewestChangeList(ChangeList):
    """A list whose filters and search find the newest LISTED_AT_MOST ids before any row.

    `older` leads to the rows behind the last page, by their ids.
    """

    model_admin: CappedAdmin[Any]
    is_cut = False  # older rows may match too
    next_before: int | None = None  # where older ones begin, if a filter found these
    bounds = IdRange()

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(request, *args)
        self.title = self.model_admin.list_title(self)

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        params = super().get_filters_params(params)
        return {name: value for name, value in params.items() if name != BEFORE}

    @property
    def chips(self) -> list[Chip]:
        """The filters and the search of the address, each with a way to leave it out."""
        chips = [self._chip(spec) for spec in self.filter_specs if chosen(self, spec)]
        if self.query:
            name = self.model_admin.search_name(self.query)
            chips.append(Chip(name, self.get_query_string(remove=["q", PAGE_VAR])))
        if self.bounds.before is not None and BEFORE in self.params:
            chips.append(Chip("older", self.get_query_string(remove=[BEFORE])))
        return chips

    def _chip(self, spec: Any) -> Chip:
        remove = [*spec.expected_parameters(), PAGE_VAR, BEFORE]
        return Chip(text_of(self, spec), self.get_query_string(remove=remove))

    @property
    def older(self) -> str:
        """The address of what is behind the last page; "" on the others, and if there is nothing."""
        if self.page_num < self.paginator.num_pages:
            return ""
        before = self.next_before
        if before is None and self.paginator.is_capped and self.result_list:
            before = list(self.result_list)[-1].pk
        if before is None:
            return ""
        return self.get_query_string({BEFORE: before}, remove=[PAGE_VAR])

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Any]:
        self.bounds = self.model_admin.bounds(request)
        self.root_queryset = self.bounds.of(self.root_queryset)
        rows = super().get_queryset(request, exclude_parameters)
        if not self.params:
            return rows
        # No row holds a NUL, and PostgreSQL refuses the question.
        has_nul = any("\0" in value for value in request.GET.values())
        ids = [] if has_nul else self.model_admin.newest(self, rows)
        self.is_cut = self.is_cut or len(ids) == LISTED_AT_MOST
        root = self.apply_select_related(self.root_queryset)
        matching: Any = root.filter(among(ids)).order_by(*rows.query.order_by)
        matching.matches = Matches(root.order_by(*NEWEST_FIRST), ids)
        return cast("QuerySet[Any]", matching)


def chosen(changelist: ChangeList, spec: Any) -> str:
    """Return what a filter is set to, as its choice says it; "" if it is not set."""
    if not any(name in changelist.params for name in spec.expected_parameters()):
        return ""
    chosen = [choice for choice in spec.choices(changelist) if choice["selected"]]
    if chosen:
        return str(chosen[0]["display"])
    return str(changelist.params.get(spec.expected_parameters()[0], ""))


def text_of(changelist: ChangeList, spec: Any) -> str:
    """Return a filter with its value."""
    return f"{spec.title}: {chosen(changelist, spec)}"


def newest_ids(rows: QuerySet[Any]) -> list[int]:
    """Return the ids of the newest rows, at most LISTED_AT_MOST."""
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:LISTED_AT_MOST])


def operator(request: HttpRequest) -> Actor:
    """Return the user of a request as the one who does something."""
    return changes.operator(request.user.get_username())


class CappedAdmin(admin.ModelAdmin[M]):
    """A list of at most LISTED_AT_MOST rows, searched among SEARCHED_AT_MOST."""

    paginator = CappedPaginator
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    # Fields with an index: their complete values are searched among all rows.
    indexed: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return NewestChangeList

    def bounds(self, request: HttpRequest) -> IdRange:
        """Return the ids that the address of a list asks for."""
        before = request.GET.get(BEFORE, "")
        return IdRange(before=int(before) if ID.fullmatch(before) else None)

    def searched_at_most(self) -> int:
        """Return how many of the newest ids a filter or a search without an index examines."""
        return SEARCHED_AT_MOST

    def list_title(self, changelist: NewestChangeList) -> str:
        """Return what a list shows."""
        name = str(self.opts.verbose_name_plural).capitalize()
        chips = ", ".join(chip.text for chip in changelist.chips)
        return f"{name}: {chips}" if chips else name

    def search_name(self, term: str) -> str:
        """Return what a search looks for."""
        return f"search: {term}"

    def newest(self, changelist: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return the newest ids of `rows`, which hold all matches, newest first."""
        ids = changelist.root_queryset.order_by("-pk").values_list("pk", flat=True)
        oldest = (ids.first() or 0) - self.searched_at_most()
        changelist.is_cut = oldest > 0
        matches = set(newest_ids(rows.filter(pk__gt=oldest)))
        if len(matches) == LISTED_AT_MOST:
            changelist.next_before = min(matches)
        elif oldest > 0:
            changelist.next_before = oldest + 1
        term = changelist.query.strip()
        for field in self.indexed if term else ():
            matches.update(newest_ids(rows.filter(**{field: term})))
        return nlargest(LISTED_AT_MOST, matches)


class ReadOnlyAdmin(CappedAdmin[M]):
    """Rows that cannot be created, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class RefusedError(Exception):
    """An operation has changed nothing; the message says why."""

    def __init__(self, message: str, level: str = "ERROR") -> None:
        super().__init__(message)
        self.level = level


class HistoryAdmin(ReadOnlyAdmin[M]):
    """Read-only rows with additional pages and operations.

    An operation is a POST, and a method that takes a request and a row. It needs the permission
    to change the model, although there is no form.
    """

    # Names of methods.
    operations: tuple[str, ...] = ()
    # Routes of additional pages, by the names of their methods.
    pages: Mapping[str, str] = {}
    # Above the list: names of addresses, and the texts of their links.
    list_links: Mapping[str, str] = {}
    change_list_template = "admin/webhooks_core/list.html"
    # Shown in an empty list: where rows come from.
    empty_hint = ""
    list_per_page = 50
    sortable_by = ()
    ordering = NEWEST_FIRST
    # Most pages have their own templates: this keeps the unused form small.
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
        operations = (
            self._url(f"<int:pk>/{name.replace('_', '-')}/", name, self._operate)
            for name in self.operations
        )
        pages = (
            self._url(route, name, self._page) for name, route in self.pages.items()
        )
        return [*pages, *operations, *super().get_urls()]

    def _url(
        self, route: str, name: str, view: Callable[..., HttpResponseBase]
    ) -> URLPattern:
        return path(
            route,
            self.admin_site.admin_view(partial(view, getattr(self, name))),
            name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
        )

    def _page(
        self, page: Callable[..., HttpResponse], request: HttpRequest, **kwargs: Any
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return page(request, **kwargs)
        except RefusedError as error:
            return self.back(request, kwargs["pk"], str(error), error.level)

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
            row = self.row(request, pk)
            self.check_operable(row)
            return operation(request, row)
        except RefusedError as error:
            return self.back(request, pk, str(error), error.level)
        except ObjectDoesNotExist as error:  # deleted meanwhile with its account
            raise Http404 from error

    def row(self, request: HttpRequest, pk: int) -> M:
        """Return a row that this user may see. Raises Http404 and PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        # Databases refuse an id of more than 64 bits.
        obj = self.get_object(request, str(pk)) if pk < 2**63 else None
        if obj is None:
            raise Http404
        return obj

    def check_operable(self, obj: M) -> None:
        """Raise RefusedError for a row that no operation may change."""

    def back(
        self, request: HttpRequest, pk: int, message: str, level: str = "INFO"
    ) -> HttpResponse:
        """Redirect to the page of a row, with a message."""
        self.message_user(request, message, level)
        return redirect(
            f"admin:{self.opts.app_label}_{self.opts.model_name}_change", pk
        )

    def render(
        self, request: HttpRequest, template: str, *, title: str, **context: Any
    ) -> HttpResponse:
        """Return a page in the frame of the admin."""
        frame = self.admin_site.each_context(request)
        context |= {"title": title, "opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, frame | context)

    def page_context(self, request: HttpRequest, obj: M) -> dict[str, Any]:
        """Return the context of a row's page, besides the row."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if obj := kwargs.get("obj"):
            context |= self.page_context(request, obj)
        return super().render_change_form(request, context, *args, **kwargs)

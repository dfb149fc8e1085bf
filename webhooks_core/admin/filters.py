"""Filters of the lists; their choices need no query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.admin import base
from webhooks_core.models import Attempt, Delivery, Event
from webhooks_core.models.endpoints import EndpointQuerySet
from webhooks_core.network.outcomes import Outcome
from webhooks_core.owners import charts, cursors
from webhooks_core.owners.endpoint_state import Health
from webhooks_core.owners.id_ranges import IdRange, created_between

CODE = re.compile("[1-5]([0-9]{2})?")


class ChoiceFilter(admin.SimpleListFilter):
    """Narrows a list to one of its choices; with any other value the list is empty."""

    @property
    def is_known(self) -> bool:
        """Return True if the value is one of the choices."""
        return self.value() in dict(self.lookup_choices)

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if (value := self.value()) is None:
            return queryset
        return self.narrow(queryset, value) if self.is_known else queryset.none()

    def narrow(self, rows: Any, value: str) -> Any:
        """Return the rows of a choice."""
        raise NotImplementedError


class DeliveryFilter(ChoiceFilter):
    """A filter of the list of deliveries, which can find the newest ids itself."""

    def newest(
        self, endpoints: EndpointQuerySet, bounds: IdRange
    ) -> Sequence[int] | None:
        """Return the newest ids within bounds that match; None if too many match.

        Deliveries of other endpoints may be left out.
        """
        raise NotImplementedError


class TypeFilter(ChoiceFilter):
    """The event types of the profiles."""

    title = "event type"
    parameter_name = "type"
    field = "event__type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        types = (profile.event_types for profile in profiles.registered())
        return [
            (name, name) for name in sorted({name for names in types for name in names})
        ]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(**{self.field: value})


class DeliveryTypeFilter(TypeFilter, DeliveryFilter):
    def newest(self, endpoints: EndpointQuerySet, bounds: IdRange) -> Sequence[int]:
        rows = bounds.of(Delivery.objects.filter(event__type=self.value()))
        newest = rows.order_by("-event", "-pk").values_list("pk", flat=True)
        return list(newest[: base.LISTED_AT_MOST])


class CreatedFilter(DeliveryFilter):
    """The time of creation: the last hours or days, or `<from>..<until>` in UTC."""

    title = "created"
    parameter_name = "created"
    template = "admin/webhooks_core/created_filter.html"
    others: Mapping[str, str] = {}  # of the address, for the form

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, f"the last {period.name}") for key, period in LAST.items()]

    @property
    def is_known(self) -> bool:
        return time_range(self.value() or "") is not None

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices, and the range if it is none of them."""
        left_out = {self.parameter_name, PAGE_VAR, base.BEFORE}
        params = changelist.params.items()
        self.others = {name: text for name, text in params if name not in left_out}
        yield from super().choices(changelist)
        value = self.value() or ""
        if self.is_known and value not in LAST:
            display = value.replace("T", " ").replace("..", " to ").strip()
            yield {"selected": True, "query_string": "?", "display": f"{display} UTC"}

    def narrow(self, rows: Any, value: str) -> Any:
        since, until = time_range(value) or (None, None)
        return cursors.created(rows, since, until)

    def newest(
        self, endpoints: EndpointQuerySet, bounds: IdRange
    ) -> Sequence[int] | None:
        """Return nothing: the bounds of the list have this range already."""
        return None


LAST = {key: charts.PERIODS[key] for key in ("1h", "24h", "7d", "30d")}


def time_range(text: str) -> tuple[datetime | None, datetime | None] | None:
    """Return from when and until when, for `1h` or `2026-11-25T10:00..`; None for other texts."""
    if period := LAST.get(text):
        return timezone.now() - period.parts * period.part, None
    since, dots, until = text.partition("..")
    try:
        times = _time(since), _time(until)
    except ValueError:
        return None
    return times if dots and any(times) else None


def _time(text: str) -> datetime | None:
    """Return a time, without a zone in UTC. Raises ValueError for another text than "" or a time."""
    if not text:
        return None
    at = datetime.fromisoformat(text)
    if not 2000 <= at.year < 3000:
        raise ValueError(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def created_range(
    model: type[Delivery | Event], request: HttpRequest, listed: IdRange
) -> IdRange:
    """Return the ids that a list shows, narrowed to its range of time."""
    since, until = time_range(request.GET.get("created", "")) or (None, None)
    first, last = created_between(model, since, until)
    befores = [pk for pk in (listed.before, last) if pk is not None]
    return IdRange(first, min(befores, default=None))


class StatusFilter(DeliveryFilter):
    """The status as the list shows it: a suspended delivery is not pending."""

    title = "status"
    parameter_name = "status__exact"
    PENDING, SUSPENDED = str(Delivery.Status.PENDING.value), "suspended"
    FAILED = str(Delivery.Status.FAILED.value)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        pending, *ended = (
            (str(value), label) for value, label in Delivery.Status.choices
        )
        return [pending, (self.SUSPENDED, "Suspended"), *ended]

    def narrow(self, rows: Any, value: str) -> Any:
        if value == self.SUSPENDED:
            return rows.suspended()
        if value == self.PENDING:
            return rows.dispatchable()
        return rows.filter(status=value)

    def newest(
        self, endpoints: EndpointQuerySet, bounds: IdRange
    ) -> Sequence[int] | None:
        rows, most = bounds.of(Delivery.objects.all()), base.LISTED_AT_MOST
        if self.value() == self.SUSPENDED:
            return rows.waiting().newest_pending(endpoints.idle(), most=most)
        if self.value() == self.PENDING:
            receiving = rows.newest_pending(endpoints.receiving(), most=most)
            in_flight = rows.in_flight(endpoints.idle()).values_list("pk", flat=True)
            return nlargest(most, {*receiving, *in_flight})
        if self.value() == self.FAILED:
            return base.newest_ids(rows.filter(status=Delivery.Status.FAILED))
        return None


class TriggerFilter(DeliveryFilter):
    title = "trigger"
    parameter_name = "trigger__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return Delivery.Trigger.choices

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(trigger=value)

    def newest(
        self, endpoints: EndpointQuerySet, bounds: IdRange
    ) -> Sequence[int] | None:
        if self.value() == Delivery.Trigger.EVENT:
            return None
        by_hand = bounds.of(Delivery.objects.exclude(trigger=Delivery.Trigger.EVENT))
        return base.newest_ids(by_hand.filter(trigger=self.value()))


class ErrorFilter(DeliveryFilter):
    """Deliveries with at least one attempt of this outcome."""

    title = "error class"
    parameter_name = "error"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in Outcome.values if name != Outcome.OK]

    def narrow(self, rows: Any, value: str) -> Any:
        attempts = Attempt.objects.filter(delivery=OuterRef("pk"), outcome=value)
        return rows.filter(Exists(attempts))

    def newest(self, endpoints: EndpointQuerySet, bounds: IdRange) -> Sequence[int]:
        failed = Attempt.objects.exclude(outcome=Outcome.OK)
        return _attempted(failed.filter(outcome=self.value()), bounds)


class CodeFilter(DeliveryFilter):
    """Deliveries whose last attempt had a response of this kind."""

    title = "response"
    parameter_name = "code"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(f"{digit}", f"{digit}xx") for digit in (3, 4, 5)]

    @property
    def is_known(self) -> bool:
        """Return True for a class, and for a whole status such as 503."""
        return CODE.fullmatch(self.value() or "") is not None

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(last_error__startswith=f"HTTP {value}").exclude(
            status=Delivery.Status.DELIVERED
        )

    def newest(self, endpoints: EndpointQuerySet, bounds: IdRange) -> Sequence[int]:
        code = self.value() or ""
        first, most = int(code.ljust(3, "0")), 10 ** (3 - len(code))
        codes = Q(status_code__gte=first, status_code__lt=first + most)
        return _attempted(Attempt.objects.filter(codes, outcome=Outcome.HTTP), bounds)


def _attempted(attempts: QuerySet[Attempt], bounds: IdRange) -> Sequence[int]:
    """Return the newest ids of deliveries, once for each of these attempts."""
    rows = bounds.of(attempts, "delivery").order_by("-delivery")
    return list(rows.values_list("delivery", flat=True)[: base.LISTED_AT_MOST])


class HealthFilter(ChoiceFilter):
    title = parameter_name = "health"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.name.lower(), state.value) for state in reversed(Health)]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Hide deleted endpoints unless they, or an endpoint by its id, are asked for."""
        is_by_id = "_" in request.GET.get("q", "")
        if self.value() is None and not is_by_id:
            return queryset.filter(deleted_at=None)
        return super().queryset(request, queryset)

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(Health[value.upper()].condition)


class ProductFilter(ChoiceFilter):
    title = parameter_name = "product"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(profile.name, profile.name) for profile in profiles.registered()]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(profile=value)

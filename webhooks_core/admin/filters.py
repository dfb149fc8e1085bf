"""Filters of the lists; their choices need no query."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest

from webhooks_core import profiles
from webhooks_core.admin import base
from webhooks_core.endpoint_state import Health
from webhooks_core.models import Attempt, Delivery
from webhooks_core.models.endpoints import EndpointQuerySet
from webhooks_core.network.outcomes import Outcome


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

    def newest(self, endpoints: EndpointQuerySet) -> Sequence[int] | None:
        """Return the newest ids that match; None if too many match.

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
    def newest(self, endpoints: EndpointQuerySet) -> Sequence[int]:
        rows = Delivery.objects.filter(event__type=self.value())
        return _first(rows.order_by("-event", "-pk").values_list("pk", flat=True))


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

    def newest(self, endpoints: EndpointQuerySet) -> Sequence[int] | None:
        rows, most = Delivery.objects.all(), base.LISTED_AT_MOST
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

    def newest(self, endpoints: EndpointQuerySet) -> Sequence[int] | None:
        if self.value() == Delivery.Trigger.EVENT:
            return None
        by_hand = Delivery.objects.exclude(trigger=Delivery.Trigger.EVENT)
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

    def newest(self, endpoints: EndpointQuerySet) -> Sequence[int]:
        # An id comes once for each of its attempts; the caller removes duplicates.
        failed = Attempt.objects.exclude(outcome=Outcome.OK)
        rows = failed.filter(outcome=self.value()).order_by("-delivery")
        return _first(rows.values_list("delivery", flat=True))


def _first(ids: Any) -> Sequence[int]:
    return list(ids[: base.LISTED_AT_MOST])


class HealthFilter(ChoiceFilter):
    title = parameter_name = "health"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.name.lower(), state.value) for state in reversed(Health)]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(Health[value.upper()].condition)


class ProductFilter(ChoiceFilter):
    title = parameter_name = "product"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(profile.name, profile.name) for profile in profiles.registered()]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(profile=value)

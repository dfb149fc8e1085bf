"""What the lists are narrowed by: in the words of their columns, and without asking a table."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from webhooks_core import profiles
from webhooks_core.admin import base
from webhooks_core.admin.health import Health
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.models.endpoints import EndpointQuerySet
from webhooks_core.outcomes import Outcome


class DeliveryFilter(admin.SimpleListFilter):
    """Narrows the list of deliveries, and knows the newest that it leaves."""

    @property
    def is_known(self) -> bool:
        """Tell whether one of its choices is chosen."""
        return self.value() in dict(self.lookup_choices)

    def newest(self, of: EndpointQuerySet) -> Sequence[int] | None:
        """Return the ids of the newest that fit; None where too many fit for that to help.

        Where an endpoint was searched for, those of others may be left out.
        """
        raise NotImplementedError


class TypeFilter(admin.SimpleListFilter):
    """Event types, as the products define them: the table is not asked which there are."""

    title = "event type"
    parameter_name = "type"
    field = "event__type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = {name for it in profiles.registered() for name in it.event_types}
        return [(name, name) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = dict(self.lookup_choices)
        if (name := self.value()) is None:
            return queryset
        return queryset.filter(**{self.field: name} if name in known else {"pk": 0})


class DeliveryTypeFilter(DeliveryFilter, TypeFilter):
    def newest(self, of: EndpointQuerySet) -> Sequence[int]:
        rows = Delivery.objects.filter(event__type=self.value())
        return _first(rows.order_by("-event", "-pk").values_list("pk", flat=True))


class StatusFilter(DeliveryFilter):
    """The status in the words of the list: what is held is told from what will be tried."""

    title = "status"
    parameter_name = "status__exact"
    PENDING, HELD = str(Delivery.Status.PENDING.value), "held"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        pending, *ended = ((str(it.value), it.label) for it in Delivery.Status)
        return [pending, (self.HELD, "Held"), *ended]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        status = self.value()
        if status is None:
            return queryset
        if status == self.HELD:
            return queryset.suspended()
        if status == self.PENDING:
            return queryset.dispatchable()
        known = status in dict(self.lookup_choices)
        return queryset.filter(status=status) if known else queryset.none()

    def newest(self, of: EndpointQuerySet) -> Sequence[int] | None:
        if self.value() == self.HELD:
            return _newest_held(of)
        if self.value() == self.PENDING:
            return _newest_tried(of)
        if self.value() == str(Delivery.Status.FAILED.value):
            failed = Delivery.objects.filter(status=Delivery.Status.FAILED)
            return base.newest_ids(failed)
        return None


def _newest_held(of: EndpointQuerySet) -> Sequence[int]:
    waiting = Delivery.objects.waiting()
    return waiting.newest_pending(of.idle(), most=base.LISTED_AT_MOST)


def _newest_tried(of: EndpointQuerySet) -> Sequence[int]:
    most, rows = base.LISTED_AT_MOST, Delivery.objects.all()
    receiving = rows.newest_pending(of.receiving(), most=most)
    in_flight = rows.in_flight(of.idle()).values_list("pk", flat=True)
    return nlargest(most, {*receiving, *in_flight})


class TriggerFilter(DeliveryFilter):
    title = "trigger"
    parameter_name = "trigger__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(it.value), str(it.label)) for it in Delivery.Trigger]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> QuerySet[Delivery]:
        if (trigger := self.value()) is None:
            return queryset
        known = trigger in Delivery.Trigger.values
        return queryset.filter(trigger=trigger) if known else queryset.none()

    def newest(self, of: EndpointQuerySet) -> Sequence[int] | None:
        if self.value() == Delivery.Trigger.EVENT:
            return None
        by_hand = Delivery.objects.exclude(trigger=Delivery.Trigger.EVENT)
        return base.newest_ids(by_hand.filter(trigger=self.value()))


class ErrorFilter(DeliveryFilter):
    """Deliveries of which an attempt ended in this way."""

    title = "error class"
    parameter_name = "error"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(it.value, it.value) for it in Outcome if it != Outcome.OK]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> QuerySet[Delivery]:
        if (outcome := self.value()) is None:
            return queryset
        if outcome not in Outcome.values:
            return queryset.none()
        such = Attempt.objects.filter(delivery=OuterRef("pk"), outcome=outcome)
        return queryset.filter(Exists(such))

    def newest(self, of: EndpointQuerySet) -> Sequence[int]:
        # Of those of several attempts an id comes several times: that costs nobody anything.
        failed = Attempt.objects.exclude(outcome=Outcome.OK).filter(
            outcome=self.value()
        )
        return _first(failed.order_by("-delivery").values_list("delivery", flat=True))


def _first(ids: Any) -> Sequence[int]:
    return list(ids[: base.LISTED_AT_MOST])


class HealthFilter(admin.SimpleListFilter):
    title = parameter_name = "health"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(it.name.lower(), it.value) for it in reversed(Health)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Endpoint]
    ) -> QuerySet[Endpoint]:
        if (name := self.value()) is None:
            return queryset
        wanted = Health.__members__.get(name.upper())
        return queryset.filter(wanted.condition) if wanted else queryset.none()


class ProductFilter(admin.SimpleListFilter):
    title = parameter_name = "product"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(it.name, it.name) for it in profiles.registered()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Endpoint]
    ) -> QuerySet[Endpoint]:
        if (name := self.value()) is None:
            return queryset
        known = dict(self.lookup_choices)
        return queryset.filter(profile=name) if name in known else queryset.none()

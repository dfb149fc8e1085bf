"""What the lists are narrowed by: in the words of their columns, and without asking a table."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from webhooks_core import profiles
from webhooks_core.admin.health import Health
from webhooks_core.models import Attempt, Delivery, Endpoint, Outcome


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


class StatusFilter(admin.SimpleListFilter):
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
            return queryset.held()
        if status == self.PENDING:
            return queryset.tried()
        known = status in dict(self.lookup_choices)
        return queryset.filter(status=status) if known else queryset.none()


class ErrorFilter(admin.SimpleListFilter):
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

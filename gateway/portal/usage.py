"""The tabs of the portal beside webhooks: usage with what is left of budgets, and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, ClassVar, NamedTuple, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from gateway.chat.metering import reports
from gateway.chat.metering.reports import BudgetUse
from gateway.identity import Caller
from gateway.models import GatewayKey
from gateway.portal.door import Visitor
from gateway.rights import USAGE
from gateway.tenant_keys import TenantKeys
from webhooks_core.owners.charts import DAY, Chart, Period
from webhooks_core.pages.base import OwnerView
from webhooks_core.pages.searches import chips, known
from webhooks_core.web.owner_views import newest

DAYS = {"7": "7 days", "30": "30 days", "90": "90 days"}
GROUPS = {"model": "Model", "principal": "Principal", "key": "Key"}
# The rows of the table: those with the most requests.
SHOWN_ROWS = 100
PAGE_SIZE = 50


class TenantPage(OwnerView):
    """A page about the tenant. The maker of the link needs the scope, as over the API."""

    http_method_names = ["get", "head"]
    templates = "gateway/portal"
    scope: ClassVar[str]

    @property
    def caller(self) -> Caller:
        """The maker of the link. Raises PermissionDenied: it lacks the scope."""
        caller = cast("Visitor", self.owner).caller
        if self.scope not in caller.rights.scopes:
            raise PermissionDenied
        return caller


@dataclass(frozen=True, slots=True)
class UsageChart(Chart):
    """Sums by day; `show` writes one of them."""

    name: str = ""
    show: Callable[[int], str] = "{:,}".format

    @property
    def title(self) -> str:
        return self.name

    @property
    def description(self) -> str:
        return f"{self.name} by day in {self.period.name}: {self.summary}"

    @property
    def top(self) -> str:
        return self.show(self.highest)

    def words(self, ok: int, failed: int) -> str:
        total = self.show(ok + failed)
        return f"{total}, {failed:,} failed" if failed else total


class Sums(NamedTuple):
    """A row of the table: a model, principal or key, and its sums as texts."""

    name: str
    counts: list[str]
    cost: str


class Usage(TenantPage):
    """What the tenant has used, by day and by `by`, and what is left of its budgets."""

    scope = USAGE

    def get(self, request: HttpRequest) -> HttpResponse:
        tenant, now = self.caller.tenant, datetime.now(UTC)
        days = known(request.GET.get("days", ""), DAYS, "30")
        by = known(request.GET.get("by", ""), GROUPS, "model")
        parts = {"days": days, "by": by}
        period = Period(f"{days}d", DAYS[days], int(days), DAY)
        first, last = period.start(now).date(), now.date()
        rows = reports.grouped(tenant, first, last, [by]).order_by("-requests", by)
        context = {
            "charts": _charts(
                period, now, reports.grouped(tenant, first, last, ["day"])
            ),
            "budgets": reports.budgets(tenant, now),
            "rows": _table(tenant, by, rows[:SHOWN_ROWS]),
            "shown_rows": SHOWN_ROWS,
            "group": GROUPS[by],
            "days": chips(parts, "days", DAYS),
            "groups": chips(parts, "by", GROUPS),
        }
        return self.render("usage", context)


def _charts(
    period: Period, now: datetime, rows: Iterable[Mapping[str, Any]]
) -> list[UsageChart]:
    """Return the charts of requests, tokens and costs."""
    start = period.start(now)
    requests, failures, tokens, costs = ([0] * period.parts for _ in range(4))
    for row in rows:
        number = (datetime.combine(row["day"], time(), UTC) - start) // DAY
        failures[number] = row["failures"]
        requests[number] = row["requests"] - row["failures"]
        tokens[number] = (row["prompt_tokens"] or 0) + (row["completion_tokens"] or 0)
        costs[number] = row["cost_nano"] or 0
    none = [0] * period.parts
    return [
        UsageChart(period, start, requests, failures, name="Requests"),
        UsageChart(period, start, tokens, none, name="Tokens"),
        UsageChart(period, start, costs, none, name="Cost", show=reports.plain_cost),
    ]


def _table(tenant: str, by: str, rows: Iterable[Mapping[str, Any]]) -> list[Sums]:
    found = list(rows)
    names = _key_names(tenant, [row[by] for row in found]) if by == "key" else {}
    return [
        Sums(
            names.get(row[by], row[by]) or "identity headers",
            [f"{row[name] or 0:,}" for name in reports.COUNTS[:4]],
            reports.plain_cost(row["cost_nano"] or 0),
        )
        for row in found
    ]


def _key_names(tenant: str, numbers: Iterable[str]) -> dict[str, str]:
    """Return what names keys of the tenant, revoked ones too, by their numbers as texts."""
    pks = [int(number) for number in numbers if number]
    keys = GatewayKey.objects.filter(tenant=tenant, pk__in=pks)
    return {
        str(key.pk): f"{key.display_prefix}… {key.name or key.principal}"
        for key in keys
    }


class Keys(TenantPage):
    """The tenant's keys that are not revoked, newest first, and what is left of their budgets."""

    scope = USAGE

    def get(self, request: HttpRequest) -> HttpResponse:
        caller, now = self.caller, datetime.now(UTC)
        cursor = request.GET.get("cursor", "")
        query = {"cursor": cursor, "page_size": PAGE_SIZE}
        keys, older = newest(TenantKeys(caller).all(), query)
        budgets = reports.budgets(caller.tenant, now)
        rows = [
            (key, key.state(now), sorted(key.rights.scopes), _of_key(budgets, key))
            for key in keys
        ]
        return self.render("keys", {"rows": rows, "older": older})


def _of_key(budgets: Iterable[BudgetUse], key: GatewayKey) -> list[BudgetUse]:
    """Return the budgets that have a counter for a key."""
    name = f"key {key.tenant}/{key.principal}#{key.pk}"
    return [use for use in budgets if name in use.subject.split(", ")]

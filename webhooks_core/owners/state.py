"""The state of an endpoint in words: since when, why, what now. The one place that says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from django.db.models import OuterRef, Q
from django.utils import timezone
from django.utils.translation import ngettext

from webhooks_core import profiles
from webhooks_core.database.statements import CountOf
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import resending
from webhooks_core.owners.remedies import remedy
from webhooks_core.owners.resending import Selection

# More are told as "more than".
MAX_COUNTED = 10_000
UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def in_words(duration: timedelta) -> str:
    """Return `240 ms`, `12 s`, `5 min`, `3 h` or `2 d`."""
    seconds = max(duration.total_seconds(), 0)
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    size, unit = next(
        ((size, unit) for size, unit in UNITS if seconds >= 2 * size), (1, "s")
    )
    return f"{seconds / size:.0f} {unit}"


class Health(StrEnum):
    """The state of an endpoint: the first of these that applies."""

    DELETED = "Deleted"
    DISABLED = "Disabled"
    PAUSED = "Paused"
    FAILING = "Failing"
    HEALTHY = "Healthy"

    @classmethod
    def of(cls, endpoint: Endpoint) -> Self:
        facts = {
            cls.DELETED: endpoint.deleted_at is not None,
            cls.DISABLED: endpoint.is_disabled,
            cls.PAUSED: not endpoint.active,
            cls.FAILING: endpoint.failing_since is not None,
        }
        return next((state for state, fits in facts.items() if fits), cls.HEALTHY)

    @property
    def tone(self) -> str:
        return _TONES.get(self, "error")

    @property
    def condition(self) -> Q:
        """As `of`, for a query."""
        condition = _CONDITIONS.get(self, Q())
        for earlier in list(Health)[: list(Health).index(self)]:
            condition &= ~_CONDITIONS[earlier]
        return condition


_TONES = {
    Health.DELETED: "neutral",
    Health.PAUSED: "pending",
    Health.HEALTHY: "success",
}
_CONDITIONS = {
    Health.DELETED: Q(deleted_at__isnull=False),
    Health.DISABLED: Q(status=Endpoint.Status.DISABLED),
    Health.PAUSED: Q(active=False),
    Health.FAILING: Q(failing_since__isnull=False),
}
_NEXT = {
    Health.DISABLED: "Nothing is sent until you enable the endpoint or change its URL.",
    Health.PAUSED: "Switch the endpoint on: nothing is sent until then.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """What people are told of an endpoint.

    `since` is when the state began, None if nobody knows. `reason` says why, what waits and when it
    worked last; `answer` is the start of what the receiver answered, "" where it may not be shown.
    `remedy` says what to do, "" if there is nothing to do.
    """

    state: Health
    since: datetime | None
    duration: str
    reason: str
    answer: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The state in plain text, such as `Failing for 12 h: 23 failed attempts (all: HTTP 500).`."""
        lasting = f" for {self.duration}" if self.since else ""
        answer = f" Answer: {self.answer}" if self.answer else ""
        return f"{self.state.value}{lasting}: {self.reason}{answer}"


def describe(endpoint: Endpoint, *, for_owner: bool = False) -> EndpointState:
    """Return the state of an endpoint, by one query; as `describe_all`."""
    return describe_all([endpoint], for_owner=for_owner)[endpoint.pk]


def describe_all(
    endpoints: Sequence[Endpoint], *, for_owner: bool = False
) -> dict[int, EndpointState]:
    """Return the states of endpoints by their keys, by one query for all of them.

    Owners do not see what the receiver of a trusted endpoint answered: it may be internal.
    """
    now = timezone.now()
    waiting = Delivery.objects.pending().filter(endpoint=OuterRef("pk")).order_by()
    rows = Endpoint.objects.filter(pk__in=[endpoint.pk for endpoint in endpoints])
    counted = rows.annotate(count=CountOf(waiting.values("pk")[: MAX_COUNTED + 1]))
    counts = dict(counted.values_list("pk", "count"))
    return {
        endpoint.pk: _describe(
            endpoint,
            counts.get(endpoint.pk, 0),
            now,
            is_hidden=for_owner and endpoint.trusted,
        )
        for endpoint in endpoints
    }


def _describe(
    endpoint: Endpoint, waiting: int, now: datetime, *, is_hidden: bool
) -> EndpointState:
    state = Health.of(endpoint)
    since = {
        Health.DELETED: endpoint.deleted_at,
        Health.DISABLED: endpoint.disabled_at,
        Health.PAUSED: endpoint.disabled_at,
        Health.FAILING: endpoint.failing_since,
    }.get(state)
    parts = [_failures(endpoint), _last_success(endpoint, now), _waiting(waiting)]
    if state in {Health.DISABLED, Health.PAUSED, Health.DELETED}:
        parts.insert(0, "nothing is sent.")
    has_answer = endpoint.failed_attempts and not is_hidden
    return EndpointState(
        state=state,
        since=since,
        duration=in_words(now - since) if since else "",
        reason=" ".join(filter(None, parts)),
        answer=endpoint.last_response if has_answer else "",
        remedy=_remedy(state, endpoint),
    )


def _failures(endpoint: Endpoint) -> str:
    """Return for example `23 failed attempts (the last 3: HTTP 500).`."""
    count, alike = endpoint.failed_attempts, endpoint.alike_failures
    if not count:
        return ""
    attempts = ngettext("{:,} failed attempt", "{:,} failed attempts", count)
    which = "all" if alike >= count else f"the last {alike:,}" if alike > 1 else "last"
    which = "" if count == 1 else f"{which}: "
    return f"{attempts.format(count)} ({which}{endpoint.last_error})."


def _last_success(endpoint: Endpoint, now: datetime) -> str:
    if endpoint.last_success_at:
        return f"Last success {in_words(now - endpoint.last_success_at)} ago."
    return "No success yet." if endpoint.last_attempt_at else "Nothing was sent yet."


def _waiting(count: int) -> str:
    if count > MAX_COUNTED:
        return f"More than {MAX_COUNTED:,} deliveries are waiting."
    if not count:
        return ""
    text = ngettext("{:,} delivery is waiting.", "{:,} deliveries are waiting.", count)
    return text.format(count)


def _remedy(state: Health, endpoint: Endpoint) -> str:
    cause, profile = "", profiles.find(endpoint.profile)
    if endpoint.failed_attempts and endpoint.last_outcome:
        status = endpoint.last_error.removeprefix("HTTP ")
        cause = remedy(
            endpoint.last_outcome,
            int(status) if status.isdecimal() else None,
            timeout_s=profile.timeout_s if profile else 0,
        )
    return " ".join(filter(None, (cause, _NEXT.get(state, ""))))


def outage(endpoint: Endpoint) -> str:
    """Say what the last time was missed in which an endpoint received nothing; "" for nothing.

    Returns for example `8 events were not sent while the endpoint was disabled.`.
    """
    if endpoint.disabled_at is None:
        return ""
    since, until = endpoint.disabled_at, endpoint.enabled_at
    missed = resending.count(endpoint, Selection.MISSED, since=since, until=until)
    if not missed:
        return ""
    count = ngettext("{:,} event was", "{:,} events were", missed).format(missed)
    least = "At least " if missed == resending.AT_ONCE else ""
    rest = "while the endpoint was disabled" if until else "since then"
    return f"{least}{count} not sent {rest}."

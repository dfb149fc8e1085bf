"""The state of an endpoint in words: since when, why, what now. The one place that says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, SkippedEvent
from webhooks_core.models.lookups import CountOf
from webhooks_core.owners.remedies import remedy

# More are told as "more than".
MAX_COUNTED = 10_000


class Health(StrEnum):
    """The state of an endpoint: the first of these that applies."""

    DELETED = "Deleted"
    DISABLED = "Disabled"
    INACTIVE = "Inactive"
    PAUSED = "Paused"
    HANGING = "Hanging"
    FAILING = "Failing"
    HEALTHY = "Healthy"

    @classmethod
    def of(cls, endpoint: Endpoint) -> Health:
        facts = {
            cls.DELETED: endpoint.deleted_at is not None,
            cls.DISABLED: endpoint.is_disabled,
            cls.INACTIVE: not endpoint.active,
            cls.PAUSED: endpoint.paused_at is not None,
            cls.HANGING: endpoint.is_hanging,
            cls.FAILING: bool(endpoint.consecutive_failures or endpoint.failing_since),
        }
        return next((state for state, fits in facts.items() if fits), cls.HEALTHY)

    @property
    def word(self) -> str:
        """The state as the APIs name it."""
        return self.value.lower()

    @property
    def tone(self) -> str:
        return _TONES[self]

    @property
    def advice(self) -> str:
        """How an endpoint in this state delivers again; "" if it does."""
        return _ADVICE.get(self, "")

    @property
    def condition(self) -> Q:
        """As `of`, for a query."""
        condition = _CONDITIONS.get(self, Q())
        for earlier in list(Health)[: list(Health).index(self)]:
            condition &= ~_CONDITIONS[earlier]
        return condition


_TONES = {
    Health.DELETED: "neutral",
    Health.DISABLED: "error",
    Health.INACTIVE: "neutral",
    Health.PAUSED: "pending",
    Health.HANGING: "error",
    Health.FAILING: "error",
    Health.HEALTHY: "success",
}
_ADVICE = {
    Health.DISABLED: (
        "It failed too often in a row. Its owner sets another url, or an operator enables it; "
        "then its counter starts at 0. Events published until then skip it."
    ),
    Health.INACTIVE: (
        "Its owner has switched it off and may switch it on, or the owner is inactive. "
        "Events published until then skip it."
    ),
    Health.PAUSED: "Resume it. Events published until then wait.",
    Health.HANGING: (
        "Its last attempts timed out, so it gets one request at a time, a probe. After a success "
        "all that is due is sent."
    ),
}
_CONDITIONS = {
    Health.DELETED: Q(deleted_at__isnull=False),
    Health.DISABLED: Q(status=Endpoint.Status.DISABLED),
    Health.INACTIVE: Q(active=False),
    Health.PAUSED: Q(paused_at__isnull=False),
    Health.HANGING: Q(hanging_since__isnull=False),
    Health.FAILING: Q(consecutive_failures__gt=0) | Q(failing_since__isnull=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """What people are told of an endpoint.

    `since` is when the state began, None if nobody knows. `attempts` are the failed ones since the
    last success, `error` is the latest one's with the start of the response where it may be shown.
    `waiting` and `skipped` count up to one more than MAX_COUNTED. `remedy` says what to do, "" if
    there is nothing to do.
    """

    state: Health
    since: datetime | None
    attempts: int
    error: str
    last_success_at: datetime | None
    waiting: int
    skipped: int
    skipped_since: datetime | None
    sentence: str
    remedy: str


class Backlog(NamedTuple):
    """What an endpoint has not got: how much waits, how much skipped it, and since when."""

    waiting: int = 0
    skipped: int = 0
    skipped_since: datetime | None = None


def describe(
    endpoint: Endpoint, *, now: datetime | None = None, with_response: bool = True
) -> EndpointState:
    """Return the state of an endpoint, by one query. `with_response` as in `describe_all`."""
    states = describe_all([endpoint], now=now, with_response=with_response)
    return states[endpoint.pk]


def describe_all(
    endpoints: Sequence[Endpoint],
    *,
    now: datetime | None = None,
    with_response: bool = True,
) -> dict[int, EndpointState]:
    """Return the states of endpoints by their keys, by one query for all of them.

    Without `with_response` the error has nothing of what the receiver answered.
    """
    backlogs, now = backlogs_of(endpoints), now or timezone.now()
    return {
        endpoint.pk: _describe(endpoint, backlogs[endpoint.pk], now, with_response)
        for endpoint in endpoints
    }


def backlogs_of(endpoints: Iterable[Endpoint]) -> Mapping[int, Backlog]:
    """Count what waits for endpoints and what skipped them, each up to a limit."""
    waiting = Delivery.objects.pending().filter(endpoint=OuterRef("pk"))
    skipped = SkippedEvent.objects.filter(endpoint=OuterRef("pk"))
    pks = [endpoint.pk for endpoint in endpoints]
    rows = Endpoint.objects.filter(pk__in=pks).annotate(
        waiting=_counted(waiting),
        skipped=_counted(skipped),
        skipped_since=Subquery(
            skipped.order_by("event").values("event__created_at")[:1]
        ),
    )
    counts = rows.values_list("pk", "waiting", "skipped", "skipped_since")
    backlogs = {pk: Backlog(*numbers) for pk, *numbers in counts}
    return {pk: backlogs.get(pk, Backlog()) for pk in pks}


def _counted(rows: QuerySet[Any]) -> CountOf:
    """Return how many rows a subquery has, up to one more than MAX_COUNTED."""
    return CountOf(rows.order_by().values("pk")[: MAX_COUNTED + 1])


def _describe(
    endpoint: Endpoint, backlog: Backlog, now: datetime, with_response: bool
) -> EndpointState:
    state, error = Health.of(endpoint), _error(endpoint, with_response)
    return EndpointState(
        state=state,
        since=_since(state, endpoint),
        attempts=endpoint.failed_attempts,
        error=error,
        last_success_at=endpoint.last_success_at,
        waiting=backlog.waiting,
        skipped=backlog.skipped,
        skipped_since=backlog.skipped_since,
        sentence=_sentence(state, endpoint, backlog, error, now),
        remedy=_remedy(state, endpoint),
    )


def _since(state: Health, endpoint: Endpoint) -> datetime | None:
    times = {
        Health.DELETED: endpoint.deleted_at,
        Health.DISABLED: endpoint.disabled_at,
        Health.INACTIVE: endpoint.disabled_at,
        Health.PAUSED: endpoint.paused_at,
        Health.HANGING: endpoint.hanging_since,
        Health.FAILING: endpoint.failing_since,
    }
    return times.get(state)


def _error(endpoint: Endpoint, with_response: bool) -> str:
    """Return the latest failure of a row of failures; "" after a success."""
    if not endpoint.failed_attempts:
        return ""
    if with_response and endpoint.last_response:
        return f"{endpoint.last_error} `{endpoint.last_response}`"
    return endpoint.last_error


def _sentence(
    state: Health, endpoint: Endpoint, backlog: Backlog, error: str, now: datetime
) -> str:
    parts = [_begin(state, endpoint, now), _failures(state, endpoint, error, now)]
    if state is not Health.DELETED:
        parts += [_last_success(endpoint, now), _waiting(backlog)]
        parts.append(_skipped(backlog, now))
    return " ".join(filter(None, parts))


REFUSED = "Switched off by its receiver{since}: nothing is sent."
_BEGINNINGS = {
    Health.DELETED: "Deleted{since}.",
    Health.DISABLED: "Disabled{since}: nothing is sent.",
    Health.INACTIVE: "Switched off{since}: nothing is sent.",
    Health.PAUSED: "Paused{since}: deliveries wait.",
    Health.HANGING: "Hangs{since}: it gets one request at a time.",
    Health.FAILING: "",
}


def _begin(state: Health, endpoint: Endpoint, now: datetime) -> str:
    if state is Health.HEALTHY:
        is_new = endpoint.last_attempt_at is None
        return "Nothing was sent yet." if is_new else "Delivers."
    since = _since(state, endpoint)
    text = f" since {told(since, now)}" if since else ""
    is_refused = state is Health.INACTIVE and endpoint.refused_at
    return (REFUSED if is_refused else _BEGINNINGS[state]).format(since=text)


def _failures(state: Health, endpoint: Endpoint, error: str, now: datetime) -> str:
    """Return for example `Fails since 01:48:46 UTC: 759 attempts, all HTTP 500.`."""
    count, alike = endpoint.failed_attempts, endpoint.alike_failures
    if state is Health.DELETED or not count or endpoint.failing_since is None:
        return ""
    since = told(endpoint.failing_since, now)
    if count == 1:
        return f"Fails since {since}: 1 attempt, {error}."
    which = f"the last {alike:,}" if alike > 1 else "the last one"
    which = "all" if alike >= count else which
    return f"Fails since {since}: {count:,} attempts, {which} {error}."


def _last_success(endpoint: Endpoint, now: datetime) -> str:
    if endpoint.last_attempt_at is None:
        return ""
    at = endpoint.last_success_at
    return f"Last success: {told(at, now) if at else 'never'}."


def _waiting(backlog: Backlog) -> str:
    return "1 waits." if backlog.waiting == 1 else f"{_count(backlog.waiting)} wait."


def _skipped(backlog: Backlog, now: datetime) -> str:
    if not backlog.skipped or backlog.skipped_since is None:
        return ""
    events = "1 event" if backlog.skipped == 1 else f"{_count(backlog.skipped)} events"
    were = "was" if backlog.skipped == 1 else "were"
    return f"{events} since {told(backlog.skipped_since, now)} {were} not sent."


def _count(number: int) -> str:
    return f"{number:,}" if number <= MAX_COUNTED else f"More than {MAX_COUNTED:,}"


def told(at: datetime, now: datetime) -> str:
    """Return a time as `01:48:46 UTC`, with its date if that is not today's."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    form = "%H:%M:%S UTC" if at.date() == now.date() else "%Y-%m-%d %H:%M:%S UTC"
    return at.strftime(form)


def _remedy(state: Health, endpoint: Endpoint) -> str:
    cause = ""
    if state is Health.INACTIVE and endpoint.refused_at:
        return REFUSED_REMEDY
    if endpoint.failed_attempts and endpoint.last_outcome:
        profile = profiles.find(endpoint.profile)
        cause = remedy(
            endpoint.last_outcome,
            _status(endpoint.last_error),
            timeout_s=profile.timeout_s if profile else 0,
        )
    return " ".join(filter(None, (cause, _NEXT.get(state, ""))))


REFUSED_REMEDY = (
    "The receiver asked for this by the status 410 or the header `webhook-delivery: disable`."
    " Change its answer, or the url. Then enable the endpoint, and replay what was missed."
)
_NEXT = {
    Health.DISABLED: (
        "Then enable it on its page, or change its url, and replay what was missed."
    ),
    Health.INACTIVE: "Switch it on, and replay what was missed.",
    Health.PAUSED: "Resume it: what waits is sent then.",
}


def _status(error: str) -> int | None:
    """Return the status that an error such as `HTTP 500` names."""
    status = error.removeprefix("HTTP ")
    return int(status) if status.isdecimal() else None

"""Settling: answers become rows. Whatever turned out alike is one UPDATE."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

import structlog
from django.db import connection, transaction
from django.db.models import F

from webhooks_core import notices, tracing
from webhooks_core.dispatch.claims import TRANSIENT_ERRORS, Claim
from webhooks_core.dispatch.decisions import Decision, decide
from webhooks_core.models import Delivery, DispatcherLease, Endpoint
from webhooks_core.models.lookups import among
from webhooks_core.network.transport import AttemptResult
from webhooks_core.profiles import NoticeKind

UNWRITABLE = "the database refused the text of this error"

log = structlog.stdlib.get_logger(__name__)


class RecordedResult(NamedTuple):
    """One ended attempt, judged. `retry_at` is when to try again, None for never."""

    claim: Claim
    answer: AttemptResult
    verdict: Decision
    retry_at: datetime | None


def record_results(
    shift: DispatcherLease,
    ended: Sequence[tuple[Claim, AttemptResult]],
    *,
    now: datetime,
) -> list[RecordedResult]:
    """As settle(), but one result that cannot be written does not keep the others from it."""
    try:
        return settle(shift, ended, now=now)
    except TRANSIENT_ERRORS:
        raise
    except Exception as error:  # noqa: BLE001 - whatever one row does, the others are written
        log.error("batch result write failed", error=type(error).__name__)  # noqa: TRY400 - one line
    return [it for one in ended for it in _settle_one(shift, *one, now)]


def _settle_one(
    shift: DispatcherLease, claim: Claim, answer: AttemptResult, now: datetime
) -> list[RecordedResult]:
    """Write one result, at need without what the receiver said; at worst the delivery ends."""
    bare = answer._replace(error=UNWRITABLE if answer.error else "", body=b"")
    for result in (answer, bare):
        try:
            return settle(shift, [(claim, result)], now=now)
        except TRANSIENT_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            kind = type(error).__name__
            log.error(  # noqa: TRY400 - one line
                "result write failed",
                delivery=claim.due.public_id,
                error=kind,
            )
    Delivery.objects.claimed([claim.pk], lease=shift.pk).fail(error=UNWRITABLE)
    return []


def settle(
    shift: DispatcherLease,
    ended: Sequence[tuple[Claim, AttemptResult]],
    *,
    now: datetime,
) -> list[RecordedResult]:
    """Write how attempts ended, fenced by the shift; return them judged.

    Endpoints come before deliveries, as everywhere, so that two writers cannot deadlock.
    """
    untried = [claim.pk for claim, answer in ended if answer.outcome is None]
    with transaction.atomic():
        settled = _judge_all(_held(shift, ended), now)
        _count(settled, now)
        Delivery.objects.release(untried, lease=shift.pk)
        _move(shift, settled, now)
        _record(settled)
    tracing.ended(answer for _, answer in ended)
    for it in settled:
        if it.verdict.is_final:
            _log_failure(it)
    return settled


def _held(
    shift: DispatcherLease, ended: Sequence[tuple[Claim, AttemptResult]]
) -> list[tuple[Claim, AttemptResult]]:
    """Return what this shift still holds: the rest was settled or taken away before."""
    pks = [claim.pk for claim, _ in ended]
    held = set(
        Delivery.objects.claimed(pks, lease=shift.pk).values_list("pk", flat=True)
    )
    return [(claim, answer) for claim, answer in ended if claim.pk in held]


def _judge_all(
    ended: Iterable[tuple[Claim, AttemptResult]], now: datetime
) -> list[RecordedResult]:
    """Judge what was tried. What failed alike waits alike, jitter included."""
    verdicts: dict[tuple[object, ...], Decision] = {}
    settled: list[RecordedResult] = []
    for claim, answer in ended:
        if answer.outcome is None:
            continue
        alike = (answer.status_code, answer.error, answer.retry_after)
        key = (claim.due.queue, claim.tried, *alike)
        if key not in verdicts:
            verdicts[key] = decide(claim.profile, tried=claim.tried, answer=answer)
        settled.append(
            RecordedResult(claim, answer, verdicts[key], _retry_at(verdicts[key], now))
        )
    return settled


def _retry_at(verdict: Decision, now: datetime) -> datetime | None:
    return None if verdict.pause_s is None else now + timedelta(seconds=verdict.pause_s)


def _count(settled: Iterable[RecordedResult], now: datetime) -> None:
    """Count failures in a row per endpoint, and disable those that reach the limit."""
    runs: dict[int, list[RecordedResult]] = defaultdict(list)
    for it in settled:
        runs[it.claim.due.queue].append(it)
    if len(runs) > 1:
        _lock(runs)
    clean = [pk for pk, run in runs.items() if all(it.verdict.delivered for it in run)]
    for pk in clean:
        _notice_recovery(runs[pk][0])
    Endpoint.objects.filter(pk__in=clean).update(
        consecutive_failures=0, last_attempt_at=now
    )
    for pk in sorted(runs.keys() - set(clean)):
        for delivered, part in groupby(runs[pk], lambda it: it.verdict.delivered):
            _count_alike(pk, list(part), delivered=delivered, now=now)


def _lock(pks: Collection[int]) -> None:
    """Lock endpoints by id, as their removal does: the updates come in another order."""
    rows = Endpoint.objects.filter(among(pks)).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _count_alike(
    pk: int, part: Sequence[RecordedResult], *, delivered: bool, now: datetime
) -> None:
    """Count successes or failures that came in a row, as if one by one."""
    if delivered:
        _notice_recovery(part[0])
    failures = 0 if delivered else F("consecutive_failures") + len(part)
    Endpoint.objects.filter(pk=pk).update(
        consecutive_failures=failures, last_attempt_at=now
    )
    limit = part[0].claim.profile.disable_after
    if limit and Endpoint.objects.disable_failing(threshold=limit, pks=[pk]):
        endpoint, error = part[-1].claim.endpoint, part[-1].verdict.error
        notices.send(endpoint, NoticeKind.DISABLED, failures=limit, error=error)


def _notice_recovery(success: RecordedResult) -> None:
    """Give notice when a success ends a row of failures, as the endpoint was when claimed."""
    endpoint = success.claim.endpoint
    if (failures := endpoint.consecutive_failures) < notices.RECOVERED_AFTER:
        return
    if Endpoint.objects.recover(pk=endpoint.pk, after=notices.RECOVERED_AFTER):
        notices.send(endpoint, NoticeKind.RECOVERED, failures=failures)


def _move(
    shift: DispatcherLease, settled: Iterable[RecordedResult], now: datetime
) -> None:
    """Move deliveries to their next state: one UPDATE for all that share it."""
    delivered: list[int] = []
    others: dict[tuple[int, datetime | None, str], list[int]] = defaultdict(list)
    for it in settled:
        if it.verdict.delivered:
            delivered.append(it.claim.pk)
        else:
            key = (it.claim.due.queue, it.retry_at, it.verdict.error)
            others[key].append(it.claim.pk)
    if delivered:
        Delivery.objects.deliver(delivered, lease=shift.pk, at=now)
    for (_, retry_at, error), pks in others.items():
        if retry_at:
            Delivery.objects.reschedule(pks, lease=shift.pk, at=retry_at, error=error)
        else:
            Delivery.objects.claimed(pks, lease=shift.pk).fail(error=error)


# By hand: half of the time of bulk_create goes into composing SQL. A commit that the database
# did not confirm is written again, hence the conflicts.
_INSERT = (
    "INSERT INTO webhooks_core_attempt"
    " (delivery_id, number, started_at, duration_ms, outcome, status_code, error, response_body) %s"
    " ON CONFLICT DO NOTHING"
)
_INSERT_EACH = _INSERT % f"VALUES ({', '.join(['%s'] * 8)})"
# PostgreSQL would plan as many statements as there are rows.
_INSERT_ALL = _INSERT % (
    "SELECT * FROM unnest(%s::bigint[], %s::int[], %s::timestamptz[], %s::int[],"
    " %s::text[], %s::smallint[], %s::text[], %s::bytea[])"
)


def _time_adapter() -> Callable[[datetime], datetime | str]:
    """Return what makes times as the database takes them; Django's own way costs SQLite far more."""
    if connection.features.supports_timezones:
        return lambda value: value
    zone = connection.timezone
    return lambda value: str(value.astimezone(zone).replace(tzinfo=None))


def _record(settled: Iterable[RecordedResult]) -> None:
    adapted = _time_adapter()
    rows = [
        (
            claim.pk,
            claim.number,
            adapted(answer.started_at),
            answer.duration_ms,
            str(answer.outcome),
            answer.status_code,
            answer.error[:512],
            answer.body,
        )
        for claim, answer, *_ in settled
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executemany(_INSERT_EACH, rows)
        elif rows:
            cursor.execute(
                _INSERT_ALL, [list(column) for column in zip(*rows, strict=True)]
            )


def _log_failure(it: RecordedResult) -> None:
    log.warning(
        "delivery failed",
        delivery=it.claim.due.public_id,
        endpoint=it.claim.endpoint.public_id,
        attempts=it.claim.number,
        error=it.verdict.error,
    )

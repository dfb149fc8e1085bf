"""Jobs that fill a scratch database inside PostgreSQL: a history of thirty days."""

from __future__ import annotations

import orjson
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from benchmarks.deliveries.filling import EVENT_TYPE, OWNER, PROFILE, make_endpoints
from webhooks_core import ids
from webhooks_core.models import (
    Attempt,
    Delivery,
    Endpoint,
    EndpointQueue,
    EngineState,
    Event,
)
from webhooks_core.upkeep.rollups import COMMITTED_AFTER, count_attempts

PER_OWNER = 50
BODY = "x" * 500
# As long as the header lines of a usual request and response.
DETAILS = orjson.dumps({"lease": 1, "request": "h" * 400, "response": "h" * 200})
AT_ONCE = 250_000
DAYS = 30
# The attempts in the sums of charts: all of millions would take an hour.
SUMMED = 100_000


def fill_endpoints(count: int) -> None:
    """Make endpoints of owners with 50 each; the first endpoint is paused."""
    make_endpoints("http://127.0.0.1:9/", count)
    first = _first_endpoint()
    Endpoint.objects.filter(pk=first).update(paused_at=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(_OWNERS, {"owner": OWNER, "first": first, "each": PER_OWNER})
        cursor.execute("VACUUM ANALYZE")


def fill_deliveries(count: int) -> None:
    """Add deliveries, two of each event, with their attempts.

    A tenth is pending, nineteen of twenty of these for the paused endpoint. A tenth is for the
    second endpoint, which fails every tenth; of the others, every ninetieth has failed.
    """
    # PostgreSQL would check foreign keys by plans that it made for empty tables.
    connection.close()
    for start in range(0, count, AT_ONCE):
        _fill(start, min(AT_ONCE, count - start), of=count)
    queues = EndpointQueue.objects.exclude(pk=_first_endpoint())
    queues.mark_due(list(queues.values_list("pk", flat=True)), at=timezone.now())
    _sum_up()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _sum_up() -> None:
    """Sum the latest attempts up by hour, as sweeps of many minutes do."""
    EngineState.objects.get_or_create(pk=1)
    newest = Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0
    first = newest - SUMMED
    EngineState.objects.filter(attempts_counted__lt=first).update(
        attempts_counted=first
    )
    now = timezone.now()
    while EngineState.objects.get().attempts_counted < newest:
        count_attempts(now)
        now += COMMITTED_AFTER


def _first_endpoint() -> int:
    return Endpoint.objects.earliest("pk").pk


def _fill(start: int, count: int, *, of: int) -> None:
    params = {
        "start": start,
        "count": count,
        "of": of,
        "event": Event.objects.aggregate(newest=Max("pk"))["newest"] or 0,
        "delivery": Delivery.objects.aggregate(newest=Max("pk"))["newest"] or 0,
        "first": _first_endpoint(),
        "endpoints": Endpoint.objects.count(),
        "each": PER_OWNER,
        "owner": OWNER,
        "profile": PROFILE,
        "type": EVENT_TYPE,
        "body": BODY.encode(),
        "details": DETAILS.decode(),
    }
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in (_EVENTS, _DELIVERIES, _ATTEMPTS):
            cursor.execute(statement, params)
        for model in (Event, Delivery):
            table = model._meta.db_table  # noqa: SLF001 - documented
            cursor.execute(_SEQUENCE.format(table=table))


_OWNERS = """
UPDATE webhooks_core_endpoint SET owner = %(owner)s || (id - %(first)s) / %(each)s"""
_TIME = f"now() - interval '{DAYS} days' * (1 - (%(start)s + i) / %(of)s::float)"
# As `ids.public_id`: the first 55 of 56 bits of the microseconds, and a number in place of chance.
_DIGITS = " || ".join(
    f"substr('{ids.ALPHABET}', (micros >> {shift} & 31)::int + 1, 1)"
    for shift in range(51, 0, -5)
)
_ID = f"{_DIGITS} || lpad(to_hex({{number}}), {ids.LENGTH - 11}, '0')"
_MICROS = "(extract(epoch FROM at) * 1000000)::bigint AS micros"
_EVENTS = f"""
INSERT INTO webhooks_core_event (id, public_id, profile, owner, type, size, created_at, body)
SELECT id, 'evt_' || {_ID.format(number="id")}, %(profile)s,
 %(owner)s || i %% %(endpoints)s / %(each)s, %(type)s, length(%(body)s), at, %(body)s
FROM (SELECT i, at, %(event)s + i / 2 AS id, {_MICROS}
 FROM (SELECT i, {_TIME} AS at FROM generate_series(2, %(count)s + 1, 2) i) times) rows"""  # noqa: S608 - our own text
_DELIVERIES = f"""
INSERT INTO webhooks_core_delivery (id, public_id, event_id, endpoint_id, status, attempts,
 interruptions, lone_interruptions, next_attempt_at, last_error, delivered_at, created_at, "trigger",
 replay_number)
SELECT %(delivery)s + i, 'dlv_' || {_ID.format(number="%(delivery)s + i")}, event,
 %(first)s + CASE WHEN status = 0 THEN CASE WHEN i %% 200 > 0 THEN 0 ELSE i / 200 %% %(endpoints)s END
  WHEN i %% 10 = 5 THEN 1 ELSE i %% %(endpoints)s END, status,
 CASE status WHEN 0 THEN 0 WHEN 1 THEN 1 ELSE 5 END, 0, 0,
 CASE status WHEN 0 THEN at END, CASE status WHEN 2 THEN 'HTTP 500' ELSE '' END,
 CASE status WHEN 1 THEN at END, at, 'event', 0
FROM (SELECT i, at, {_MICROS}, %(event)s + (i + 1) / 2 AS event,
  CASE WHEN i %% 10 = 0 THEN 0 WHEN i %% 100 IN (1, 5) THEN 2 ELSE 1 END AS status
  FROM (SELECT i, {_TIME} AS at FROM generate_series(1, %(count)s) i) times) rows
ON CONFLICT DO NOTHING"""  # noqa: S608 - our own text
_ATTEMPTS = """
INSERT INTO webhooks_core_attempt (delivery_id, number, started_at, duration_ms, outcome,
 status_code, error, response_body, details)
SELECT id, number, created_at, 20 + id %% 200, CASE status WHEN 1 THEN 'ok' ELSE 'http' END,
 CASE status WHEN 1 THEN 200 ELSE 500 END, last_error, 'ok'::bytea, %(details)s::jsonb
FROM webhooks_core_delivery, generate_series(1, attempts) number WHERE id > %(delivery)s"""
_SEQUENCE = "SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"

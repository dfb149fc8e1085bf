"""/healthz: does this process answer. /readyz: can it do its work, and are events delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from config.operations import access
from webhooks_core.upkeep import stats

LATE_AFTER_S = 120
RETRY_AFTER_S = 5

log = structlog.stdlib.get_logger(__name__)


class NotReadyError(Exception):
    """A part of the system does not work; the message says why and what to do."""


class Finding(NamedTuple):
    """The result of a check; the message is for operators alone."""

    is_ok: bool
    message: str


def check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        raise NotReadyError(
            f"The database does not answer ({type(error).__name__}): start it, or "
            "correct DATABASE_URL."
        ) from error
    return f"{connection.vendor} answers."


@cache
def check_migrations() -> str:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise NotReadyError(
            f"Migrations that are not applied: {len(plan)}. Run `manage.py migrate`."
        )
    return "All migrations are applied."


def check_broker() -> str:
    if not settings.REDIS_URL:
        return "Tasks are queued in the database."
    from redis import Redis
    from redis.exceptions import RedisError

    timeouts = {"socket_connect_timeout": 1, "socket_timeout": 1}
    try:
        with Redis.from_url(settings.REDIS_URL, retry=None, **timeouts) as client:
            client.ping()
    except (RedisError, ValueError) as error:
        raise NotReadyError(
            f"Redis does not answer ({type(error).__name__}): start it, or correct "
            "REDIS_URL. Events are kept meanwhile."
        ) from error
    return "Redis answers."


def check_worker() -> str:
    now = timezone.now()
    last_seen_at = stats.last_seen_at(now)
    if last_seen_at is None or now - last_seen_at > stats.SILENT_AFTER:
        raise NotReadyError(
            f"No worker has reported since {last_seen_at or 'the start'}: run `manage.py "
            "qcluster` on the same database and Redis (it reports within a minute)."
        )
    return "A worker has reported."


def check_oldest_due() -> str:
    late = stats.oldest_due(timezone.now()).total_seconds()
    message = f"The oldest due delivery has waited for {late:.0f} s"
    if late > LATE_AFTER_S:
        raise NotReadyError(
            f"{message}: add workers, or look for the endpoint that is slow."
        )
    return f"{message}."


# Each returns a sentence about what works. Raises NotReadyError or django.db.Error.
CHECKS: Mapping[str, Callable[[], str]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "worker": check_worker,
    "oldest_due": check_oldest_due,
}
# This machine cannot serve without them. If it were taken out of service for one of the others, no
# worker would come back.
NEEDED = {"database", "migrations", "broker"}


def examine() -> dict[str, Finding]:
    """Run every check, in the order in which faults should be corrected."""
    return {name: _run(name) for name in CHECKS}


def _run(name: str) -> Finding:
    try:
        return Finding(True, CHECKS[name]())
    except NotReadyError as error:
        return Finding(False, str(error))
    except DatabaseError:
        return Finding(False, "Unknown: repair the database or its migrations first.")


# Nothing is changed here: another method is 405, and not 403 because of a missing token.
@csrf_exempt
@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 as long as this process answers requests at all."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when this machine can serve requests, otherwise 503.

    With `?all`, faults of what runs elsewhere (workers, a backlog) count too. The messages
    are for those who may see the state.
    """
    findings = examine()
    faults = {name: each.message for name, each in findings.items() if not each.is_ok}
    if faults:
        log.warning("not ready", **faults)
    status, code, headers = "degraded" if faults else "ok", 200, {}
    if NEEDED & faults.keys() or (faults and "all" in request.GET):
        status, code = "unavailable", 503
        headers = {"Retry-After": str(RETRY_AFTER_S)}
    try:
        has_details = access.may_see_state(request)
    except DatabaseError:  # the check of the database says so
        has_details = False
    checks = {
        name: {"status": "ok" if finding.is_ok else "failed"}
        | ({"detail": finding.message} if has_details else {})
        for name, finding in findings.items()
    }
    return JsonResponse(
        {"status": status, "checks": checks}, status=code, headers=headers
    )

"""/healthz: does this process answer. /readyz: can it do its work, and are events delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

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
from redis import Redis
from redis.exceptions import RedisError

from config.operations import access
from webhooks_core.models import DispatcherLease
from webhooks_core.upkeep import stats

LATE_AFTER_S = 120
RETRY_AFTER_S = 5
UNKNOWN = "Unknown: repair the database or its migrations first."

log = structlog.stdlib.get_logger(__name__)


class NotReadyError(Exception):
    """A part of the system does not work; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; the message is for operators alone.

    `is_needed`: this machine cannot serve requests while the check fails.
    """

    is_ok: bool
    is_needed: bool
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


def check_migrations() -> str:
    try:
        _is_migrated()
    except DatabaseError as error:
        raise NotReadyError(
            "The migrations cannot be read: repair the database first."
        ) from error
    return "All migrations are applied."


@cache
def _is_migrated() -> bool:
    """Return True, and remember it. Raises NotReadyError."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise NotReadyError(
            f"Migrations that are not applied: {len(plan)}. Run `manage.py migrate`."
        )
    return True


def check_broker() -> str:
    if not settings.REDIS_URL:
        return "Tasks are queued in the database."
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
    if last_seen_at is None:
        raise NotReadyError(
            "No worker has reported yet: start `manage.py qcluster` (its first "
            "heartbeat comes within a minute)."
        )
    age = (now - last_seen_at).total_seconds()
    if age > stats.SILENT_AFTER.total_seconds():
        raise NotReadyError(
            f"No worker has reported for {age:.0f} s: start `manage.py qcluster` on "
            "the same database and Redis."
        )
    return f"The last heartbeat of a worker came {max(age, 0):.0f} s ago."


def check_oldest_due() -> str:
    late = stats.oldest_due(timezone.now()).total_seconds()
    if late > LATE_AFTER_S:
        raise NotReadyError(
            f"The oldest due delivery has waited for {late:.0f} s: add workers, or look "
            "for the endpoint that is slow."
        )
    return f"The oldest due delivery has waited for {late:.0f} s."


def check_network() -> str:
    leases = DispatcherLease.objects.live()
    offline = leases.filter(offline_since__isnull=False)
    hosts = ", ".join(
        f"{host} since {since:%H:%M:%S} UTC"
        for host, since in offline.values_list("host", "offline_since")
    )
    if hosts:
        raise NotReadyError(
            f"No receiver can be reached from {hosts}: repair its network or name server. "
            "Until then deliveries wait, and no failure counts against their receivers."
        )
    return "Every worker has network access."


# Each returns a sentence about what works. Raises NotReadyError or django.db.Error.
CHECKS: Mapping[str, Callable[[], str]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "worker": check_worker,
    "network": check_network,
    "oldest_due": check_oldest_due,
}
# A web machine taken out of service would not bring a worker back.
NEEDED = {"database", "migrations", "broker"}


def examine() -> dict[str, Finding]:
    """Run every check, in the order in which faults should be corrected."""
    return {name: _run(name) for name in CHECKS}


def _run(name: str) -> Finding:
    is_ok = False
    try:
        message, is_ok = CHECKS[name](), True
    except NotReadyError as error:
        message = str(error)
    except DatabaseError:
        message = UNKNOWN
    return Finding(is_ok, name in NEEDED, message)


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
    faults = {name: finding for name, finding in findings.items() if not finding.is_ok}
    if faults:
        messages = {name: finding.message for name, finding in faults.items()}
        log.warning("not ready", **messages)
    status, code, headers = "degraded" if faults else "ok", 200, {}
    if any(finding.is_needed or "all" in request.GET for finding in faults.values()):
        status, code = "unavailable", 503
        headers = {"Retry-After": str(RETRY_AFTER_S)}
    return JsonResponse(
        {"status": status, "checks": _shown(request, findings)},
        status=code,
        headers=headers,
    )


def _shown(
    request: HttpRequest, findings: Mapping[str, Finding]
) -> dict[str, dict[str, str]]:
    try:
        has_details = access.may_see_state(request)
    except DatabaseError:  # the check of the database says so
        has_details = False
    return {
        name: {"status": "ok" if finding.is_ok else "failed"}
        | ({"detail": finding.message} if has_details else {})
        for name, finding in findings.items()
    }

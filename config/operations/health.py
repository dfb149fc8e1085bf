"""/healthz: does this process answer. /readyz: can it do its work, and does anybody deliver."""

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
from webhooks_core import stats
from webhooks_core.models import DispatcherLease

LATE_AFTER_S = 120
RETRY_AFTER_S = 5

log = structlog.stdlib.get_logger(__name__)


class UnfitError(Exception):
    """A part of the system does not do its work; the message says what and what to do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One part of the system. `needed`: without it this machine cannot serve requests.

    `run` returns a sentence about what it found. Raises UnfitError.
    """

    run: Callable[[], str]
    needed: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `told` is for operators alone."""

    ok: bool
    needed: bool
    told: str


def check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        raise UnfitError(
            f"The database does not answer ({type(error).__name__}): start it, or "
            "correct DATABASE_URL."
        ) from error
    return f"{connection.vendor} answers."


def check_migrations() -> str:
    """Tell whether the tables fit the code. Once they do, they are not looked at again."""
    if not _is_migrated.cache_info().currsize:
        try:
            _is_migrated()
        except DatabaseError as error:
            raise UnfitError(
                "The migrations cannot be looked at: mend the database first."
            ) from error
    return "All migrations are applied."


@cache
def _is_migrated() -> bool:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise UnfitError(
            f"Migrations that are not applied: {len(plan)}. Run `manage.py migrate`."
        )
    return True


def check_broker() -> str:
    if not settings.REDIS_URL:
        return "Tasks are queued in the database."
    try:
        with _redis() as client:
            client.ping()
    except (RedisError, ValueError) as error:
        raise UnfitError(
            f"Redis does not answer ({type(error).__name__}): start it, or correct "
            "REDIS_URL. Events are kept meanwhile."
        ) from error
    return "Redis answers."


def _redis() -> Redis:
    return Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=1, retry=None
    )


def check_worker() -> str:
    now = timezone.now()
    try:
        heard = stats.last_seen_at(now)
    except DatabaseError as error:
        raise UnfitError(
            "Unknown: mend the database or its migrations first."
        ) from error
    if heard is None:
        raise UnfitError(
            "No worker has ever been heard of: start `manage.py qcluster` (the first "
            "sign comes within a minute)."
        )
    age = (now - heard).total_seconds()
    if age > stats.SILENT_AFTER.total_seconds():
        raise UnfitError(
            f"No worker was heard of for {age:.0f} s: start `manage.py qcluster` on "
            "the same database and Redis."
        )
    return f"A worker was heard of {max(age, 0):.0f} s ago."


def check_oldest_due() -> str:
    try:
        late = stats.oldest_due(timezone.now()).total_seconds()
    except DatabaseError as error:
        raise UnfitError(
            "Unknown: mend the database or its migrations first."
        ) from error
    if late > LATE_AFTER_S:
        raise UnfitError(
            f"The oldest due delivery has waited for {late:.0f} s: add workers, or look "
            "for the endpoint that is slow."
        )
    return f"The oldest due delivery has waited for {late:.0f} s."


def check_network() -> str:
    try:
        offline = list(
            DispatcherLease.objects.live(timezone.now())
            .filter(offline_since__isnull=False)
            .values_list("host", "offline_since")
        )
    except DatabaseError as error:
        raise UnfitError(
            "Unknown: mend the database or its migrations first."
        ) from error
    if offline:
        told = ", ".join(
            f"{host} since {since:%H:%M:%S} UTC" for host, since in offline
        )
        raise UnfitError(
            f"No receiver can be reached from {told}: mend its network or name server. "
            "Deliveries wait meanwhile, and nothing counts against their receivers."
        )
    return "No worker misses the network."


CHECKS: Mapping[str, Check] = {
    "database": Check(check_database, needed=True),
    "migrations": Check(check_migrations, needed=True),
    "broker": Check(check_broker, needed=True),
    # A web machine taken out of service would not bring a worker back.
    "worker": Check(check_worker, needed=False),
    "network": Check(check_network, needed=False),
    "oldest_due": Check(check_oldest_due, needed=False),
}


def examine() -> dict[str, Finding]:
    """Run every check, in the order in which faults should be mended."""
    return {name: _find(check) for name, check in CHECKS.items()}


def _find(check: Check) -> Finding:
    try:
        return Finding(True, check.needed, check.run())
    except UnfitError as error:
        return Finding(False, check.needed, str(error))


# Nothing is changed here: another method is 405, and not 403 for want of a token.
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
    """Answer 200 when this machine can serve, otherwise 503.

    `?all` makes faults of what runs elsewhere (workers, a backlog) count too. What was found
    in words is for those who may see the state.
    """
    findings = examine()
    counted = [it for it in findings.values() if it.needed or "all" in request.GET]
    ready = all(it.ok for it in counted)
    if not all(it.ok for it in findings.values()):
        log.warning(
            "not ready", **{name: it.told for name, it in findings.items() if not it.ok}
        )
    response = JsonResponse(
        {"status": _word(findings, ready=ready), "checks": _shown(request, findings)},
        status=200 if ready else 503,
    )
    if not ready:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _word(findings: Mapping[str, Finding], *, ready: bool) -> str:
    if not ready:
        return "unavailable"
    return "ok" if all(it.ok for it in findings.values()) else "degraded"


def _shown(
    request: HttpRequest, findings: Mapping[str, Finding]
) -> dict[str, dict[str, str]]:
    try:
        detailed = access.may_see_state(request)
    except DatabaseError:  # the check of the database tells it
        detailed = False
    return {
        name: {"status": "ok" if it.ok else "failed"}
        | ({"detail": it.told} if detailed else {})
        for name, it in findings.items()
    }

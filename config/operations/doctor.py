"""What `manage.py doctor` looks at: each examination says what it found and what to do."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule

from config.operations import health
from config.operations import reach as reachability
from config.operations.reach import Level
from webhooks_core.models import Endpoint, EngineState, reencryption

MAX_CLOCK_OFF_S = 2.0
MIN_FREE_BYTES = 500 * 1024 * 1024
SWEEP = "webhooks_core.tasks.sweep"


class Finding(NamedTuple):
    """What one examination found; `told` says what to do unless all is well."""

    name: str
    level: Level
    told: str


def examine(*, reach: bool) -> Iterator[Finding]:
    """Look at everything; `reach` also asks BASE_URL over the network, as a client would."""
    yield from _settings()
    yield from _health()
    for name, look in EXAMINATIONS.items():
        yield from _guarded(name, look)
    if reach:
        yield from (Finding(*found) for found in reachability.examine())


def _guarded(
    name: str, look: Callable[[], Iterator[tuple[Level, str]]]
) -> Iterator[Finding]:
    try:
        for level, told in look():
            yield Finding(name, level, told)
    except DatabaseError:
        yield Finding(
            name, Level.FAILED, "Unknown: mend the database or its migrations first."
        )


def _settings() -> Iterator[Finding]:
    """Run Django's system checks, in production those for a deployment too."""
    every = checks.run_checks(include_deployment_checks=not settings.LOCAL)
    found = [it for it in every if not it.is_silenced()]
    for message in found:
        level = Level.FAILED if message.is_serious() else Level.WARNING
        told = " ".join(filter(None, (message.msg, message.hint)))
        yield Finding("settings", level, f"{told} ({message.id})")
    if not found:
        yield Finding(
            "settings", Level.OK, f"The {settings.ENVIRONMENT} settings are sound."
        )


def _health() -> Iterator[Finding]:
    """Look at what /readyz looks at."""
    for name, it in health.examine().items():
        yield Finding(name, Level.OK if it.ok else Level.FAILED, it.told)


def _schedule() -> Iterator[tuple[Level, str]]:
    if not Schedule.objects.filter(func=SWEEP).exclude(repeats=0).exists():
        yield (
            Level.FAILED,
            (
                f"The sweep is not scheduled: add {SWEEP} to the scheduled tasks in the "
                "admin, every minute."
            ),
        )
    elif not EngineState.objects.filter(pk=1).exists():
        yield (
            Level.FAILED,
            (
                "The bell's row is missing, so nobody is called: run `manage.py webhooks_dispatch` "
                "once, which makes it."
            ),
        )
    else:
        yield Level.OK, "The sweep is scheduled."


def _secrets() -> Iterator[tuple[Level, str]]:
    """Decrypt all that is kept encrypted: signing secrets, own headers, keys of upstreams."""
    unreadable = reencryption.unreadable()
    if unreadable:
        yield (
            Level.FAILED,
            (
                f"{unreadable} secrets cannot be decrypted: add the key that they were made "
                "with to WEBHOOK_SECRET_KEYS."
            ),
        )
    else:
        yield Level.OK, "Every secret can be decrypted."


def _endpoints() -> Iterator[tuple[Level, str]]:
    disabled = Endpoint.objects.filter(
        deleted_at=None, status=Endpoint.Status.DISABLED
    ).count()
    if disabled:
        yield (
            Level.WARNING,
            f"{disabled} endpoints are disabled after failing too often: see the admin.",
        )
    else:
        yield Level.OK, "No endpoint is disabled."


def _clock() -> Iterator[tuple[Level, str]]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            yield Level.OK, "The database has this machine's clock."
            return
        cursor.execute("SELECT clock_timestamp()")
        off = abs((timezone.now() - cursor.fetchone()[0]).total_seconds())
    if off > MAX_CLOCK_OFF_S:
        yield (
            Level.FAILED,
            (
                f"This clock and the database's differ by {off:.0f} s: synchronise both "
                "(leases and signatures depend on time)."
            ),
        )
    else:
        yield Level.OK, "This clock and the database's agree."


def _disk() -> Iterator[tuple[Level, str]]:
    folder = settings.VAR_DIR if settings.VAR_DIR.exists() else settings.BASE_DIR
    free = shutil.disk_usage(folder).free
    told = f"{free // 1024**2} MB are free where var/ is"
    if free < MIN_FREE_BYTES:
        yield Level.WARNING, f"Only {told}: make room."
    else:
        yield Level.OK, f"{told}."


def _static() -> Iterator[tuple[Level, str]]:
    if settings.LOCAL:
        yield Level.OK, "Local instances serve static files as they are."
    elif not (settings.STATIC_ROOT / "staticfiles.json").exists():
        yield (
            Level.FAILED,
            "Static files are not collected: run `manage.py collectstatic --noinput`.",
        )
    else:
        yield Level.OK, "Static files are collected."


def _staff() -> Iterator[tuple[Level, str]]:
    if not get_user_model().objects.filter(is_staff=True, is_active=True).exists():
        yield (
            Level.WARNING,
            "Nobody can open the admin: run `manage.py createsuperuser`.",
        )
    else:
        yield Level.OK, "Somebody can open the admin."


def _temporary_files() -> Iterator[tuple[Level, str]]:
    """Task processes and request bodies above 1 MiB need a folder for temporary files."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"0")
    except OSError as error:
        yield (
            Level.FAILED,
            (
                f"No temporary file can be written ({error.strerror}): give this process a "
                "writable /tmp (containers: `--tmpfs /tmp`), or name a folder in TMPDIR."
            ),
        )
    else:
        yield Level.OK, "Temporary files can be written."


EXAMINATIONS: Mapping[str, Callable[[], Iterator[tuple[Level, str]]]] = {
    "schedule": _schedule,
    "secrets": _secrets,
    "endpoints": _endpoints,
    "clock": _clock,
    "disk": _disk,
    "temporary files": _temporary_files,
    "static": _static,
    "staff": _staff,
}

"""What `manage.py doctor` examines: each finding says what is wrong and what to do."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule

from config.operations import health, reach
from config.operations.reach import Finding, Level, Verdict, failed, ok, warning
from webhooks_core.management.output import counted
from webhooks_core.models import Endpoint, EngineState, reencryption
from webhooks_core.network import proxy

MAX_CLOCK_DIFFERENCE_S = 2.0
MIN_FREE_BYTES = 500 * 1024 * 1024
SWEEP = "webhooks_core.tasks.sweep"


def examine(*, include_reach: bool) -> Iterator[Finding]:
    """Examine everything; `include_reach` also requests BASE_URL over the network."""
    yield from _settings()
    for name, finding in health.examine().items():
        level = Level.OK if finding.is_ok else Level.FAILED
        yield Finding(name, level, finding.message)
    for name, examination in EXAMINATIONS.items():
        try:
            yield Finding(name, *examination())
        except DatabaseError:
            yield Finding(name, Level.FAILED, health.UNKNOWN)
    if include_reach:
        yield from reach.examine()


def _settings() -> Iterator[Finding]:
    """Run Django's system checks, in production those for a deployment too."""
    run = partial(checks.run_checks, include_deployment_checks=not settings.LOCAL)
    try:
        found = run(databases=["default"])
    except DatabaseError:  # the examination of the database says so
        found = run()
    messages = [message for message in found if not message.is_silenced()]
    for message in messages:
        level = Level.FAILED if message.is_serious() else Level.WARNING
        text = " ".join(filter(None, (message.msg, message.hint)))
        yield Finding("settings", level, f"{text} ({message.id})")
    if not messages:
        yield Finding(
            "settings", Level.OK, f"The {settings.ENVIRONMENT} settings are sound."
        )


def _schedule() -> Verdict:
    if not Schedule.objects.filter(func=SWEEP).exclude(repeats=0).exists():
        return failed(
            f"The sweep is not scheduled: add {SWEEP} to the scheduled tasks in the "
            "admin, every minute."
        )
    if not EngineState.objects.filter(pk=1).exists():
        return failed(
            "The engine's state row is missing, so no dispatcher is notified: run "
            "`manage.py webhooks_dispatch` once, which creates it."
        )
    return ok("The sweep is scheduled.")


def _secrets() -> Verdict:
    """Decrypt everything that is stored encrypted: secrets, custom headers, upstream keys."""
    if unreadable := reencryption.unreadable():
        return failed(
            f"{counted(unreadable, 'secret')} cannot be decrypted: add the missing key to "
            "WEBHOOK_SECRET_KEYS."
        )
    return ok("Every secret can be decrypted.")


def _endpoints() -> Verdict:
    disabled = Endpoint.objects.filter(
        deleted_at=None, status=Endpoint.Status.DISABLED
    ).count()
    if disabled:
        endpoints = counted(disabled, "endpoint is", "endpoints are")
        return warning(f"{endpoints} disabled after failing too often: see the admin.")
    return ok("No endpoint is disabled.")


def _clock() -> Verdict:
    if connection.vendor == "sqlite":
        return ok("The database has this machine's clock.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        difference = abs((timezone.now() - cursor.fetchone()[0]).total_seconds())
    if difference > MAX_CLOCK_DIFFERENCE_S:
        return failed(
            f"This clock and the database's differ by {difference:.0f} s: synchronise both "
            "(leases and signatures depend on time)."
        )
    return ok("This clock and the database's agree.")


def _egress() -> Verdict:
    if not settings.WEBHOOK_PROXY_URL:
        return ok("Deliveries go out without a proxy.")
    try:
        address = proxy.parse(settings.WEBHOOK_PROXY_URL)[:2]
        socket.create_connection(address, timeout=3).close()
    except (OSError, ValueError):
        return failed(
            "The proxy of WEBHOOK_PROXY_URL cannot be reached: deliveries wait for it."
        )
    return ok("The proxy for deliveries accepts connections.")


def _disk() -> Verdict:
    folders = [settings.VAR_DIR, settings.BASE_DIR]
    if connection.vendor == "sqlite":
        folders.insert(0, Path(connection.settings_dict["NAME"]).absolute().parent)
    folder = next(filter(Path.exists, folders))
    free = shutil.disk_usage(folder).free
    message = f"{free // 1024**2} MB are free in {folder}"
    if free < MIN_FREE_BYTES:
        return warning(f"Only {message}: free disk space.")
    return ok(f"{message}.")


def _static() -> Verdict:
    if settings.LOCAL:
        return ok("Local instances serve static files as they are.")
    if not (settings.STATIC_ROOT / "staticfiles.json").exists():
        return failed(
            "Static files are not collected: run `manage.py collectstatic --noinput`."
        )
    return ok("Static files are collected.")


def _staff() -> Verdict:
    if not get_user_model().objects.filter(is_staff=True, is_active=True).exists():
        return warning("No user can open the admin: run `manage.py createsuperuser`.")
    return ok("At least one user can open the admin.")


def _temporary_files() -> Verdict:
    """Task processes and request bodies above 1 MiB need a folder for temporary files."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"0")
    except OSError as error:
        return failed(
            f"No temporary file can be written ({error.strerror}): give this process a "
            "writable /tmp (containers: `--tmpfs /tmp`), or name a folder in TMPDIR."
        )
    return ok("Temporary files can be written.")


EXAMINATIONS: Mapping[str, Callable[[], Verdict]] = {
    "schedule": _schedule,
    "secrets": _secrets,
    "endpoints": _endpoints,
    "clock": _clock,
    "egress": _egress,
    "disk": _disk,
    "temporary files": _temporary_files,
    "static": _static,
    "staff": _staff,
}

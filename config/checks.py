"""System checks that refuse an incomplete production. Each has an id and a hint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.db import Error as DatabaseError
from django.http.request import validate_host

MIN_SECRET_KEY = 50


@checks.register(checks.Tags.security)
def check_production(**_: Any) -> list[checks.CheckMessage]:
    """Return the faults of a production's settings; nothing locally."""
    return [] if settings.LOCAL else list(_faults())


def _faults() -> Iterator[checks.CheckMessage]:
    base = urlsplit(settings.BASE_URL)
    if base.scheme != "https":
        yield checks.Error(
            "BASE_URL is not https.",
            hint="Tokens and signatures need encryption: set BASE_URL to the https origin.",
            id="signpost.E001",
        )
    if not validate_host(base.hostname or "", settings.ALLOWED_HOSTS):
        yield checks.Error(
            "ALLOWED_HOSTS does not contain the host of BASE_URL.",
            hint=f"Add {base.hostname} to ALLOWED_HOSTS.",
            id="signpost.E002",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield checks.Error(
            "ALLOWED_HOSTS accepts every host.",
            hint="List the host names of this service.",
            id="signpost.E003",
        )
    if settings.DEBUG:
        yield checks.Error(
            "DEBUG is on in production.",
            hint="Unset DEBUG: its pages show settings and source code to everyone.",
            id="signpost.E004",
        )
    proxies = map(ip_network, settings.GATEWAY_TRUSTED_PROXIES)
    if any(network.prefixlen == 0 for network in proxies):
        yield checks.Error(
            "GATEWAY_TRUSTED_PROXIES contains every address.",
            hint="Anyone could claim any identity by a header: list only the proxies.",
            id="signpost.E007",
        )
    if len(settings.SECRET_KEY) < MIN_SECRET_KEY or len(set(settings.SECRET_KEY)) < 10:
        yield checks.Error(
            f"SECRET_KEY is shorter than {MIN_SECRET_KEY} characters or too uniform.",
            hint="Create one: python -c 'import secrets; print(secrets.token_urlsafe(50))'",
            id="signpost.E005",
        )
    yield from _engine_faults()


def _engine_faults() -> Iterator[checks.CheckMessage]:
    engine = settings.DATABASES["default"]["ENGINE"]
    if settings.REDIS_URL and engine.endswith("sqlite3"):
        yield checks.Warning(
            "REDIS_URL is set, but the database is SQLite.",
            hint="Machines cannot share SQLite: set DATABASE_URL to PostgreSQL, or "
            "leave REDIS_URL empty.",
            id="signpost.W001",
        )
    if settings.Q_CLUSTER["workers"] < 2:
        yield checks.Warning(
            "WORKERS is below 2.",
            hint="While a dispatcher waits for a slow receiver, other tasks need a second worker.",
            id="signpost.W002",
        )


@checks.register(checks.Tags.database)
def check_secrets(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return an error if a stored secret, custom header or key of an upstream cannot be decrypted."""
    # Its sources are models, which are not loaded when checks are registered.
    from webhooks_core.models import reencryption

    try:
        unreadable = reencryption.unreadable() if databases else 0
    except DatabaseError:  # no tables: `migrate` creates them after this check
        unreadable = 0
    if not unreadable:
        return []
    return [
        checks.Error(
            f"Stored secrets that no key decrypts: {unreadable}.",
            hint="Add the missing key to WEBHOOK_SECRET_KEYS.",
            id="signpost.E009",
        )
    ]


@checks.register(checks.Tags.security)
def check_static_files(**_: Any) -> list[checks.CheckMessage]:
    """Return a warning for a production whose pages lack their static files."""
    if settings.LOCAL or (settings.STATIC_ROOT / "staticfiles.json").exists():
        return []
    return [
        checks.Warning(
            "Static files are not collected.",
            hint="Run `manage.py collectstatic --noinput`.",
            id="signpost.W003",
        )
    ]

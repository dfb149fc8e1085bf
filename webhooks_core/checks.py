"""System checks of the settings: each names the setting, its fault and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

from cryptography.fernet import Fernet
from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from webhooks_core import profiles
from webhooks_core.conf import RUN_S, webhook_settings

NEW_KEY = "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"


@checks.register
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each setting that webhooks_core cannot work with."""
    return [*_key_faults(), *_target_faults(), *_task_faults()]


def _key_faults() -> Iterator[checks.CheckMessage]:
    try:
        keys = webhook_settings.SECRET_KEYS
    except ImproperlyConfigured:
        keys = ()
    if not keys:
        yield checks.Error(
            "WEBHOOK_SECRET_KEYS holds no key.",
            hint=f"Make one: {NEW_KEY}",
            id="webhooks_core.E001",
        )
    if not all(_is_fernet_key(key) for key in keys):
        yield checks.Error(
            "WEBHOOK_SECRET_KEYS holds a key that is not 32 url-safe base64 bytes.",
            hint=f"Make one: {NEW_KEY}",
            id="webhooks_core.E002",
        )
    if settings.SECRET_KEY in keys:
        yield checks.Error(
            "WEBHOOK_SECRET_KEYS holds SECRET_KEY.",
            hint="Give them keys of their own, so that one leak is not two.",
            id="webhooks_core.E003",
        )


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except (ValueError, TypeError):
        return False
    return True


def _target_faults() -> Iterator[checks.CheckMessage]:
    for text in webhook_settings.ALLOWED_TARGETS:
        try:
            ip_network(text)
        except ValueError as error:
            yield checks.Error(
                f"WEBHOOK_ALLOWED_TARGETS: {error}.",
                hint="Name networks in CIDR notation, such as 10.1.0.0/16.",
                id="webhooks_core.E004",
            )


def _task_faults() -> Iterator[checks.CheckMessage]:
    if not apps.is_installed("django_q"):
        yield checks.Error(
            "INSTALLED_APPS lacks django_q, whose tasks send the deliveries.",
            hint="Add django_q, and run `manage.py qcluster` beside the web server.",
            id="webhooks_core.E005",
        )
    cluster = getattr(settings, "Q_CLUSTER", {})
    timeout, retry = cluster.get("timeout"), cluster.get("retry", 60)
    if timeout is None:
        return
    # A dispatcher that is told to stop awaits the requests that it has opened.
    longest = RUN_S + max((it.timeout_s for it in profiles.registered()), default=0)
    if timeout < longest:
        yield checks.Error(
            f"Q_CLUSTER: timeout is {timeout} s; a dispatcher may run for {longest:g} s.",
            hint=f"Set timeout above {longest:g}, and retry above timeout.",
            id="webhooks_core.E006",
        )
    if retry <= timeout:
        yield checks.Error(
            f"Q_CLUSTER: retry is {retry} s, not more than timeout, {timeout} s.",
            hint="Set retry above timeout: else tasks that still run are run again.",
            id="webhooks_core.E007",
        )

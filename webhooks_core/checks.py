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
from django.core.management import get_commands

from webhooks_core.conf import webhook_settings
from webhooks_core.network import proxy

NEW_KEY = (
    "Make one: python -c "
    "'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
)


@checks.register
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each invalid setting."""
    return [*_key_faults(), *_target_faults(), *_task_faults()]


def _fault(number: int, message: str, hint: str) -> checks.Error:
    return checks.Error(message, hint=hint, id=f"webhooks_core.E{number:03}")


def _key_faults() -> Iterator[checks.Error]:
    try:
        keys = webhook_settings.SECRET_KEYS
    except ImproperlyConfigured:
        keys = ()
    name = "WEBHOOK_SECRET_KEYS"
    if not keys:
        yield _fault(1, f"{name} holds no key.", NEW_KEY)
    if not all(_is_fernet_key(key) for key in keys):
        yield _fault(
            2, f"{name} holds a key that is not 32 url-safe base64 bytes.", NEW_KEY
        )
    if settings.SECRET_KEY in keys:
        hint = "Give them keys of their own, so that one leak is not two."
        yield _fault(3, f"{name} holds SECRET_KEY.", hint)


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except (ValueError, TypeError):
        return False
    return True


def _target_faults() -> Iterator[checks.Error]:
    for text in webhook_settings.ALLOWED_TARGETS:
        try:
            ip_network(text)
        except ValueError as error:
            hint = "Name networks in CIDR notation, such as 10.1.0.0/16."
            yield _fault(4, f"WEBHOOK_ALLOWED_TARGETS: {error}.", hint)
    try:
        if url := webhook_settings.PROXY_URL:
            proxy.parse(url)
    except ValueError as error:  # its text does not show the password
        hint = "Write http://user:password@host:port; `user:password@` may be left out."
        yield _fault(8, f"WEBHOOK_PROXY_URL is {error}.", hint)


def _task_faults() -> Iterator[checks.Error]:
    if not apps.is_installed("django_q"):
        message = "INSTALLED_APPS lacks django_q, whose tasks send the deliveries."
        hint = "Add django_q, and run `manage.py qcluster` beside the web server."
        yield _fault(5, message, hint)
    elif get_commands()["qcluster"] == "django_q":
        message = "INSTALLED_APPS has django_q before webhooks_core."
        hint = "Put webhooks_core first: its qcluster stops its dispatchers in time."
        yield _fault(6, message, hint)

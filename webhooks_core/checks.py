"""System checks of the settings: each names the setting, its fault and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from itertools import chain
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

# The number of an error, its message and its hint.
Fault = tuple[int, str, str]


@checks.register
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each invalid setting."""
    return [
        checks.Error(message, hint=hint, id=f"webhooks_core.E{number:03}")
        for number, message, hint in chain(
            _key_faults(), _target_faults(), _task_faults()
        )
    ]


def _key_faults() -> Iterator[Fault]:
    try:
        keys = webhook_settings.SECRET_KEYS
    except ImproperlyConfigured:
        keys = ()
    name = "WEBHOOK_SECRET_KEYS"
    if not keys:
        yield 1, f"{name} holds no key.", NEW_KEY
    if not all(_is_fernet_key(key) for key in keys):
        yield 2, f"{name} holds a key that is not 32 url-safe base64 bytes.", NEW_KEY
    if settings.SECRET_KEY in keys:
        hint = "Give them keys of their own, so that one leak is not two."
        yield 3, f"{name} holds SECRET_KEY.", hint


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except (ValueError, TypeError):
        return False
    return True


def _target_faults() -> Iterator[Fault]:
    for text in webhook_settings.ALLOWED_TARGETS:
        try:
            ip_network(text)
        except ValueError as error:
            hint = "Name networks in CIDR notation, such as 10.1.0.0/16."
            yield 4, f"WEBHOOK_ALLOWED_TARGETS: {error}.", hint
    try:
        if url := webhook_settings.PROXY_URL:
            proxy.parse(url)
    except ValueError as error:  # its text does not show the password
        hint = "Write http://user:password@host:port; `user:password@` may be left out."
        yield 8, f"WEBHOOK_PROXY_URL is {error}.", hint


def _task_faults() -> Iterator[Fault]:
    if not apps.is_installed("django_q"):
        message = "INSTALLED_APPS lacks django_q, whose tasks send the deliveries."
        hint = "Add django_q, and run `manage.py qcluster` beside the web server."
        yield 5, message, hint
    elif get_commands()["qcluster"] == "django_q":
        message = "INSTALLED_APPS has django_q before webhooks_core."
        hint = "Put webhooks_core first: its qcluster stops its dispatchers in time."
        yield 6, message, hint

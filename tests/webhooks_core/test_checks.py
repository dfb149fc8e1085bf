"""Settings that webhooks_core cannot work with are named, with a remedy, before anything is sent."""

import pytest
from django.apps import apps
from django.core import checks

from tests.conftest import PLAIN
from webhooks_core import checks as webhooks_checks
from webhooks_core import profiles
from webhooks_core.checks import check_settings

KEY = "k" * 43 + "="  # the form of a Fernet key
TASKS = {"name": "own", "timeout": 90, "retry": 120}


@pytest.fixture(autouse=True)
def sound(settings, monkeypatch):
    monkeypatch.setattr(profiles, "PROFILES", {"plain": PLAIN})
    settings.WEBHOOK_SECRET_KEYS = [KEY]
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.1.0.0/16", "fd00::/8"]
    settings.Q_CLUSTER = TASKS
    return settings


def test_valid_settings_pass():
    assert check_settings() == []
    assert check_settings in checks.registry.registry.get_checks()


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        ("E001", "WEBHOOK_SECRET_KEYS", []),
        ("E002", "WEBHOOK_SECRET_KEYS", [KEY, "short"]),
        ("E002", "WEBHOOK_SECRET_KEYS", [None]),
        ("E003", "SECRET_KEY", KEY),
        ("E004", "WEBHOOK_ALLOWED_TARGETS", ["10.1.0.0/16", "10.1.0.1/16"]),
        ("E004", "WEBHOOK_ALLOWED_TARGETS", ["example.com"]),
        ("E008", "WEBHOOK_PROXY_URL", "https://proxy.example:3128"),
    ],
)
def test_an_unusable_setting_is_an_error_that_names_it(sound, number, name, value):
    setattr(sound, name, value)
    [error] = check_settings()
    assert error.id == f"webhooks_core.{number}"
    assert (name in error.msg, bool(error.hint)) == (True, True)


def test_missing_keys_are_an_error(sound):
    del sound.WEBHOOK_SECRET_KEYS
    [error] = check_settings()
    assert error.id == "webhooks_core.E001"


def test_django_q_must_be_installed(monkeypatch):
    monkeypatch.setattr(apps, "is_installed", lambda name: name != "django_q")
    [error] = check_settings()
    assert error.id == "webhooks_core.E005"


def test_the_command_that_stops_the_dispatchers_must_win(monkeypatch):
    monkeypatch.setattr(
        webhooks_checks, "get_commands", lambda: {"qcluster": "django_q"}
    )
    [error] = check_settings()
    assert error.id == "webhooks_core.E006"

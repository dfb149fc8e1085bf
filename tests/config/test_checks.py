import pytest
from cryptography.fernet import Fernet
from django.core import checks

from config.checks import (
    check_production,
    check_secrets,
    check_static_files,
)
from tests.webhooks_core.factories import EndpointFactory

SOUND = {
    "LOCAL": False,
    "DEBUG": False,
    "BASE_URL": "https://signpost.example",
    "ALLOWED_HOSTS": ["signpost.example"],
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOP",
    "REDIS_URL": "",
}


@pytest.fixture
def production(settings):
    for name, value in SOUND.items():
        setattr(settings, name, value)
    return settings


def test_a_sound_production_passes(production):
    assert check_production() == []


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        ("E001", "BASE_URL", "http://signpost.example"),
        ("E002", "ALLOWED_HOSTS", ["elsewhere.example"]),
        ("E003", "ALLOWED_HOSTS", ["*"]),
        ("E004", "DEBUG", True),
        ("E005", "SECRET_KEY", "short"),
        ("E005", "SECRET_KEY", "x" * 60),
        ("E007", "GATEWAY_TRUSTED_PROXIES", ["10.0.0.1/32", "0.0.0.0/0"]),
        ("E007", "GATEWAY_TRUSTED_PROXIES", ["::/0"]),
    ],
)
def test_an_incomplete_production_is_refused(production, number, name, value):
    setattr(production, name, value)
    [error] = check_production()
    assert isinstance(error, checks.Error)
    assert error.id == f"signpost.{number}"
    assert error.hint
    production.LOCAL = True
    assert check_production() == []


def test_a_subdomain_wildcard_holds_the_host_of_the_base_url(production):
    production.ALLOWED_HOSTS = [".example"]
    assert check_production() == []


def test_redis_beside_sqlite_is_a_warning(production, monkeypatch):
    production.REDIS_URL = "redis://127.0.0.1:6379/0"
    engine = {"ENGINE": "django.db.backends.sqlite3"}
    monkeypatch.setitem(production.DATABASES, "default", engine)
    [warning] = check_production()
    assert isinstance(warning, checks.Warning)
    assert (warning.id, bool(warning.hint)) == ("signpost.W001", True)


def test_a_single_worker_is_a_warning(production):
    production.Q_CLUSTER = {"workers": 1}
    [warning] = check_production()
    assert (warning.id, bool(warning.hint)) == ("signpost.W002", True)


@pytest.mark.django_db
def test_secrets_that_no_key_decrypts_are_an_error(plain, settings):
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    EndpointFactory.create()
    assert check_secrets(databases=["default"]) == []
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    [error] = check_secrets(databases=["default"])
    assert (error.id, error.msg) == (
        "signpost.E009",
        "Stored secrets that no key decrypts: 1.",
    )
    assert check_secrets() == []  # without --database


def test_a_production_without_static_files_is_warned_of(production, tmp_path):
    production.STATIC_ROOT = tmp_path
    [warning] = check_static_files()
    assert warning.id == "signpost.W003"
    (tmp_path / "staticfiles.json").touch()
    assert check_static_files() == []

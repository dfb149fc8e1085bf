import os
import re
import resource
import runpy
import subprocess
import sys
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.cookies import PrefixedCookieStorage
from config.environment import database, stored_key
from tests.deploy_check import PRODUCTION
from tests.docs.samples import DOCS
from tests.e2e.starting import Outcome, outcomes
from tests.running import environment as nothing_but


def fault(environment: dict[str, str]) -> str:
    """Read the settings in this process, in an environment of its own; return the error."""
    with (
        patch.dict(os.environ, environment, clear=True),
        pytest.raises(ImproperlyConfigured) as raised,
    ):
        runpy.run_path("config/settings.py")
    return str(raised.value)


def check(**variables: str) -> Outcome:
    return outcomes(("check",), environment=nothing_but(**variables))[0]


REQUIRED = sorted(PRODUCTION.keys() - {"ENVIRONMENT"})


@pytest.mark.parametrize("name", REQUIRED)
def test_production_refuses_to_start_without_a_variable_and_names_it(name):
    given = {key: value for key, value in PRODUCTION.items() if key != name}
    assert f"{name}: Environment variable not set." in fault(given)


def test_one_message_lists_every_required_variable_and_every_malformed_one():
    message = fault({"ENVIRONMENT": "production", "WORKERS": "many", "DEBUG": "x"})
    head, *lines = message.split("\n  ")
    assert head == "the environment is not usable"
    assert [line.partition(":")[0] for line in lines] == sorted(
        [*REQUIRED, "DEBUG", "WORKERS"]
    )


def test_the_required_variables_are_those_of_the_page():
    page = (DOCS / "settings.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\*\*required\*\*", page, re.MULTILINE)
    assert sorted(rows) == REQUIRED


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_holds_no_text_is_listed_beside_the_other_faults(content, tmp_path):
    path = tmp_path / "secret"
    if content:
        path.write_bytes(content)
    for environment in ({}, {"ENVIRONMENT": "production"}):
        message = fault(environment | {"SECRET_KEY_FILE": str(path), "WORKERS": "many"})
        assert "SECRET_KEY: SECRET_KEY_FILE names no readable text file." in message
        assert "WORKERS: Not a valid integer." in message
        assert message.count("SECRET_KEY:") == 1


def test_a_start_loads_only_what_it_needs_and_collects_no_garbage():
    """Each command loads the settings and the models, and most of them the URL map."""
    shown = """
import gc, sys, django
def loaded(names):
    return set(names.split()) & set(sys.modules)
from django.conf import settings
settings.INSTALLED_APPS
print(loaded("catalog gateway recording webhooks_core graphene prometheus_client rest_framework"))
django.setup()
print(loaded("rest_framework.serializers requests pydantic mcp"))
import config.asgi, config.urls
print(loaded("redis bs4 mcp"))
print(gc.get_freeze_count() > 10_000)
"""
    command = [sys.executable, "-c", shown]
    variables = nothing_but(DJANGO_SETTINGS_MODULE="config.settings")
    assert subprocess.check_output(command, env=variables) == b"set()\n" * 3 + b"True\n"


@pytest.mark.slow
def test_production_starts_when_every_variable_is_set_or_names_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(PRODUCTION["SECRET_KEY"] + "\n")
    given = {k: v for k, v in PRODUCTION.items() if k != "SECRET_KEY"}
    done = check(**given, SECRET_KEY_FILE=str(secret))
    assert done.status == 0, done.output


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DEBUG", "perhaps", "DEBUG: Not a valid boolean."),
        ("BASE_URL", "http://127.0.0.1:8000/", "BASE_URL: Give the origin alone"),
        ("BASE_URL", "ftp://127.0.0.1", "BASE_URL: Not an http or https origin."),
        ("BASE_URL", "http://signpost.example", "BASE_URL: a local instance"),
        ("BASE_URL", "http://[", "BASE_URL: Not a valid URL."),
        ("BASE_URL", "http://127.0.0.1:99999", "BASE_URL: Not a valid URL."),
        ("CATALOG_CORS_ORIGINS", "*,http://[", "CATALOG_CORS_ORIGINS: Not a valid"),
        ("PORTAL_FRAME_ANCESTORS", "http://a:99999", "PORTAL_FRAME_ANCESTORS: Not a"),
        ("OAUTH_CIMD_HOSTS", "https://a.test", "OAUTH_CIMD_HOSTS: Not a host name"),
        ("MCP_EVENTS_MAX_TTL_S", "9" * 30, "MCP_EVENTS_MAX_TTL_S: Must be"),
        ("CATALOG_ROW_BUDGET", str(2**31), "CATALOG_ROW_BUDGET: Must be"),
        ("CATALOG_ROW_BUDGET", "0", "CATALOG_ROW_BUDGET: Must be"),
        ("CATALOG_WRITES", "", "CATALOG_WRITES: Must be one of"),
        ("ALLOWED_HOSTS", "", "ALLOWED_HOSTS: Needs at least one value."),
        ("ALLOWED_HOSTS", "localhost,0.0.0.0", "ALLOWED_HOSTS: a local instance"),
        ("DATABASE_URL", "mysql://root@localhost/x", "DATABASE_URL: Only sqlite"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL: Not a sqlite"),
        ("REDIS_URL", "http://localhost", "REDIS_URL: Not a redis"),
        ("WEBHOOK_SECRET_KEYS", "short", "WEBHOOK_SECRET_KEYS: Holds a key"),
        ("WEBHOOK_SECRET_KEYS", "", "WEBHOOK_SECRET_KEYS: Needs at least one value."),
        ("WEBHOOK_ALLOWED_TARGETS", "10.0.0.0/33", "WEBHOOK_ALLOWED_TARGETS: Not"),
        ("RECORDING_TEST_RATE", "often", "RECORDING_TEST_RATE: Not a rate such as"),
        ("SQLITE_SYNCHRONOUS", "FUL", "SQLITE_SYNCHRONOUS: Must be one of: OFF"),
        ("WORKERS", "0", "WORKERS: Must be"),
        ("WEBHOOK_RETENTION_DAYS", "-1", "WEBHOOK_RETENTION_DAYS: Must be"),
        ("GATEWAY_TRUSTED_PROXIES", "proxy", "GATEWAY_TRUSTED_PROXIES: Not in CIDR"),
        ("GATEWAY_SUBSCRIPTION_QUOTA", "0", "GATEWAY_SUBSCRIPTION_QUOTA: Must be"),
        ("GATEWAY_MIN_SECRET_LENGTH", "257", "GATEWAY_MIN_SECRET_LENGTH: Must be"),
        ("TRUSTED_PROXY_COUNT", "-1", "TRUSTED_PROXY_COUNT: Must be"),
        ("OAUTH_CLIENTS_PER_ADDRESS", "0", "OAUTH_CLIENTS_PER_ADDRESS: Must be"),
        ("OAUTH_REFRESH_LEEWAY", "-1", "OAUTH_REFRESH_LEEWAY: Must be"),
        ("GATEWAY_INGEST_MAX_BYTES", "0", "GATEWAY_INGEST_MAX_BYTES: Must be"),
        ("GATEWAY_INGEST_MAX_BYTES", "10485761", "GATEWAY_INGEST_MAX_BYTES: Must be"),
        ("GATEWAY_INGEST_RATE", "often", "GATEWAY_INGEST_RATE: Not a rate such as"),
        ("EXTRA_CA_FILE", "/no/such/file", "EXTRA_CA_FILE: Names"),
        ("EXTRA_CA_FILE", "manage.py", "EXTRA_CA_FILE: Names"),
        ("WORKERS", "many", "WORKERS: Not a valid integer."),
        ("ENVIRONMENT", "staging", "ENVIRONMENT: 'staging' is neither"),
    ],
)
def test_a_malformed_variable_is_one_clear_error(name, value, words):
    assert words in fault({name: value})


def test_spaces_around_a_value_mean_nothing():
    spaced = {"EMAIL_HOST": " ", "GATEWAY_CONFIG": "\t", "WORKERS": " 3 "}
    given = {"EMAIL_HOST": "", "GATEWAY_CONFIG": "", "WORKERS": 3}
    with patch.dict(os.environ, spaced, clear=True):
        values = runpy.run_path("config/settings.py")
    assert {name: values[name] for name in given} == given


LAX: dict[str, Any] = {
    "COOKIE_PREFIX": "",
    "SESSION_COOKIE_NAME": "sessionid",
    "CSRF_COOKIE_NAME": "csrftoken",
    "SESSION_COOKIE_SECURE": False,
    "CSRF_COOKIE_SECURE": False,
    "SECURE_HSTS_SECONDS": 0,
    "SECURE_HSTS_INCLUDE_SUBDOMAINS": False,
    "SECURE_HSTS_PRELOAD": False,
    "RECORDING_RATES": dict.fromkeys(
        ("create", "test", "resend", "mcp", "challenge"), ""
    ),
}
STRICT = LAX | {
    "COOKIE_PREFIX": "__Host-",
    "SESSION_COOKIE_NAME": "__Host-sessionid",
    "CSRF_COOKIE_NAME": "__Host-csrftoken",
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
    "SECURE_HSTS_SECONDS": 31_536_000,
    "RECORDING_RATES": {
        "create": "60/hour",
        "test": "120/hour",
        "resend": "600/hour",
        "mcp": "300/minute",
        "challenge": "60/hour",
    },
}
CHOSEN = {
    "SECURE_HSTS_SECONDS": 60,
    "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
    "SECURE_HSTS_PRELOAD": True,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, LAX),
        (PRODUCTION, STRICT),
        (PRODUCTION | {name: str(it) for name, it in CHOSEN.items()}, STRICT | CHOSEN),
        (
            PRODUCTION | {"RECORDING_TEST_RATE": ""},
            STRICT | {"RECORDING_RATES": STRICT["RECORDING_RATES"] | {"test": ""}},
        ),
    ],
)
def test_cookies_hsts_and_rates_are_strict_in_production_alone(given, expected):
    with patch.dict(os.environ, given, clear=True):
        values = runpy.run_path("config/settings.py")
    assert {name: values[name] for name in expected} == expected


def test_the_cookie_of_messages_has_the_prefix_of_the_others(settings):
    assert PrefixedCookieStorage.cookie_name == f"{settings.COOKIE_PREFIX}messages"


def test_a_command_ends_with_every_fault_at_once_and_no_traceback():
    for given, words in (
        ({"DEBUG": "perhaps", "WORKERS": "many"}, ("DEBUG:", "WORKERS:")),
        ({"GATEWAY_CONFIG": "/no/such/file"}, ("/no/such/file: cannot be read",)),
    ):
        done = check(**given)
        assert done.status == 1
        assert all(word in done.output for word in words)
        assert "Traceback" not in done.output


def test_options_of_the_database_url_precede_our_own():
    options = database("postgres://user@host/name?keepalives_idle=60")["OPTIONS"]
    assert options["keepalives_idle"] == 60
    assert options["tcp_user_timeout"] == 10_000


def test_a_key_that_cannot_be_stored_is_a_fault_and_leaves_no_file(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(
            ImproperlyConfigured, match=r"secret-key .*: File too large\."
        ):
            stored_key(tmp_path / "secret-key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())

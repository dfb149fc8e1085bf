"""A command reports an unusable service on one line, without a password."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    connection,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from config.operations import service_errors
from tests.e2e.starting import outcomes
from tests.running import environment

MIGRATE = "has `manage.py migrate` been run?"


def test_an_unusable_database_is_named_with_the_first_line_of_the_reason():
    message = service_errors.describe(
        OperationalError("unable to open\nIs the server running?")
    )
    assert (
        message
        == f"the database {service_errors.database()} is not usable: unable to open"
    )


def test_an_unusable_redis_is_reported():
    message = service_errors.describe(
        RedisConnectionError("Error 111 connecting to 127.0.0.1:1.")
    )
    assert message == "Redis is not usable: Error 111 connecting to 127.0.0.1:1."


@pytest.mark.django_db
def test_a_missing_table_leads_to_the_migrations():
    with pytest.raises((OperationalError, ProgrammingError)) as raised:  # noqa: SIM117
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM nowhere")
    assert str(service_errors.describe(raised.value)).endswith(f"; {MIGRATE}")


@pytest.mark.django_db
@pytest.mark.parametrize("argument", ["a\udcff", "--delivery=a\udcff"])
def test_an_argument_that_is_no_text_is_named(monkeypatch, argument):
    monkeypatch.setattr(sys, "argv", ["manage.py", "webhooks_resend", argument])
    with pytest.raises(UnicodeEncodeError) as raised:
        call_command("webhooks_resend", delivery="a\udcff")
    message = service_errors.describe(raised.value)
    assert message == r"an argument is not valid UTF-8: 'a\udcff'"


def test_a_text_that_is_no_argument_keeps_its_traceback_and_is_not_shown():
    with pytest.raises(UnicodeEncodeError) as raised:
        "secret \udcff".encode()
    assert service_errors.describe(raised.value) is None


@pytest.mark.parametrize(
    "error",
    [IntegrityError("x"), DataError("x"), ProgrammingError("x"), ValueError("x")],
    ids=lambda error: type(error).__name__,
)
def test_any_other_error_keeps_its_traceback(error):
    assert service_errors.describe(error) is None


def test_a_password_is_never_shown(monkeypatch):
    address = {"HOST": "db", "PORT": "", "NAME": "signpost", "PASSWORD": "hush"}
    stub = SimpleNamespace(vendor="postgresql", settings_dict=address)
    monkeypatch.setattr(service_errors, "connection", stub)
    assert service_errors.database() == "postgresql db:5432/signpost"


@pytest.mark.slow
def test_a_command_on_a_missing_database_fails_with_one_line_or_the_traceback(tmp_path):
    file = tmp_path / "absent" / "x.sqlite3"
    variables = environment(DATABASE_URL=f"sqlite:///{file}")
    commands = ("list_gateway_keys",), ("list_gateway_keys", "--traceback")
    short, long = outcomes(*commands, environment=variables)
    reason = "unable to open database file"
    message = f"signpost: the database {file} is not usable: {reason}\n"
    assert short == (1, message)
    assert long.status == 1
    assert long.output.startswith("Traceback")
    assert reason in long.output

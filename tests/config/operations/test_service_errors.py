"""What a command cannot use is told on one line, by manage.py too, and never with a password."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    connection,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from config.operations import service_errors

MIGRATE = "has `manage.py migrate` been run?"


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=os.environ | variables,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_database_that_is_away_is_named_with_the_first_line_of_the_reason():
    told = service_errors.told(
        OperationalError("unable to open\nIs the server running?")
    )
    assert (
        told
        == f"the database {service_errors.database()} is not usable: unable to open"
    )


def test_redis_that_is_away_is_told():
    told = service_errors.told(
        RedisConnectionError("Error 111 connecting to 127.0.0.1:1.")
    )
    assert told == "Redis is not usable: Error 111 connecting to 127.0.0.1:1."


@pytest.mark.django_db
def test_a_table_that_is_not_there_leads_to_the_migrations():
    with pytest.raises((OperationalError, ProgrammingError)) as raised:  # noqa: SIM117
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM nowhere")
    assert str(service_errors.told(raised.value)).endswith(f"; {MIGRATE}")


@pytest.mark.parametrize(
    "error",
    [IntegrityError("x"), DataError("x"), ProgrammingError("x"), ValueError("x")],
    ids=lambda it: type(it).__name__,
)
def test_a_fault_of_our_own_keeps_its_traceback(error):
    assert service_errors.told(error) is None


def test_a_password_is_never_told(monkeypatch):
    at = {"HOST": "db", "PORT": "", "NAME": "signpost", "PASSWORD": "hush"}
    away = SimpleNamespace(vendor="postgresql", settings_dict=at)
    monkeypatch.setattr(service_errors, "connection", away)
    assert service_errors.database() == "postgresql db:5432/signpost"


def test_a_command_on_a_database_that_is_not_there_fails_with_one_line(tmp_path):
    file = tmp_path / "absent" / "x.sqlite3"
    done = manage("prune_gateway", DATABASE_URL=f"sqlite:///{file}", REDIS_URL="")
    reason = "unable to open database file"
    told = f"signpost: the database {file} is not usable: {reason}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_who_wants_the_traceback_gets_it(tmp_path):
    url = f"sqlite:///{tmp_path / 'empty.sqlite3'}"
    done = manage("prune_gateway", "--traceback", DATABASE_URL=url, REDIS_URL="")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "no such table" in done.stderr
